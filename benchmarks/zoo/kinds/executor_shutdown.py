"""A handler shuts an executor down and waits for its threads."""

from __future__ import annotations

import concurrent.futures
import time

from zoo.stage import measured, run

EXPECT = {"cause": ["lock"], "thread": ["ThreadPoolExecutor-0_0"]}


def convert():
    time.sleep(0.3)  # <- holder


def stop(pool):
    pool.shutdown(wait=True)  # <- culprit


async def handler():
    with measured():
        pool = concurrent.futures.ThreadPoolExecutor(1)
        pool.submit(convert)
        stop(pool)


if __name__ == "__main__":
    run(handler)
