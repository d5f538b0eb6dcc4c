"""Control: a child, awaited."""

from __future__ import annotations

import asyncio

from zoo.stage import run

EXPECT = {"control": True}


async def handler():
    child = await asyncio.create_subprocess_exec("sleep", "0.5")
    await child.wait()


if __name__ == "__main__":
    run(handler)
