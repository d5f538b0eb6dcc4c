"""Control: the program blocks before its loop runs, and after it has ended."""

from __future__ import annotations

import asyncio
import time

from zoo.stage import run

EXPECT = {"control": True}


async def handler():
    await asyncio.sleep(0.1)


if __name__ == "__main__":
    time.sleep(0.4)
    run(handler)
    time.sleep(0.4)
