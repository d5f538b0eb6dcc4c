"""Two workers and their parent, which stall at the same time, each once."""

from __future__ import annotations

import asyncio
import os
import time


async def stall():
    time.sleep(0.15)  # noqa: ASYNC251 - what it is for


async def main():
    await asyncio.create_task(stall())


async def nothing():
    await asyncio.sleep(0)


asyncio.run(nothing())  # so that an engine runs when it forks
children = []
for _ in range(2):
    child = os.fork()
    if not child:
        asyncio.run(main())
        raise SystemExit(0)
    children.append(child)
asyncio.run(main())
for child in children:
    assert os.waitpid(child, 0)[1] == 0
