"""Control: callbacks of half the threshold."""

from __future__ import annotations

import asyncio
import time

from zoo.stage import run

EXPECT = {"control": True}


async def handler():
    for _ in range(8):
        time.sleep(0.05)
        await asyncio.sleep(0.02)


if __name__ == "__main__":
    run(handler)
