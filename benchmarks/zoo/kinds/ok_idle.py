"""Control: an idle loop."""

from __future__ import annotations

import asyncio

from zoo.stage import run

EXPECT = {"control": True}


async def handler():
    await asyncio.sleep(1)


if __name__ == "__main__":
    run(handler)
