"""A handler waits in a lock for a pool's result, which needs that lock; killed in the deadlock."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from zoo.stage import measured, run

EXPECT = {"cause": ["lock"], "killed": True, "advice": ["result"]}
cache = threading.Lock()
pool = ThreadPoolExecutor(1)


def load():
    with cache:
        return 1


def look_up():
    with cache:
        return pool.submit(load).result()  # <- culprit


async def handler():
    with measured():
        look_up()


if __name__ == "__main__":
    run(handler)
