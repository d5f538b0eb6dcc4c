"""Control: more work than the executor has threads. Tasks wait for it, the loop does not."""

from __future__ import annotations

import asyncio
import concurrent.futures
import time

from zoo.stage import run

EXPECT = {"control": True}


async def handler():
    loop = asyncio.get_running_loop()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        await asyncio.gather(*[loop.run_in_executor(pool, time.sleep, 0.15) for _ in range(8)])


if __name__ == "__main__":
    run(handler)
