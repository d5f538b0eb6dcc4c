"""Control: the sleep is in a thread."""

from __future__ import annotations

import asyncio
import time

from zoo.stage import run

EXPECT = {"control": True}


async def handler():
    await asyncio.to_thread(time.sleep, 0.6)


if __name__ == "__main__":
    run(handler)
