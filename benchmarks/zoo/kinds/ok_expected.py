"""Control: a handler says that it may take so long."""

from __future__ import annotations

import asyncio
import time

from zoo.stage import run

import loopcanary

# Only loopcanary has a word for it.
EXPECT = {"control": True, "watchers": ["loopcanary", "loopcanary-portable"]}


async def handler():
    with loopcanary.expect("2s"):
        time.sleep(0.4)
    await asyncio.sleep(0.1)


if __name__ == "__main__":
    run(handler)
