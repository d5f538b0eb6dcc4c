"""A handler waits for an executor with .result() instead of await."""

from __future__ import annotations

import concurrent.futures
import time

from zoo.stage import measured, run

EXPECT = {"cause": ["lock"]}


def wait_for(future):
    return future.result()  # <- culprit


async def handler():
    with measured(), concurrent.futures.ThreadPoolExecutor() as pool:
        wait_for(pool.submit(time.sleep, 0.3))


if __name__ == "__main__":
    run(handler)
