"""A thread in a C call that keeps the GIL; a handler waits for it at its first system call."""

from __future__ import annotations

import os
import threading

from zoo.stage import measured, run, sized

EXPECT = {"cause": ["gil"]}
ENOUGH = sized(lambda count: sum(range(count)), 0.35, start=100_000)
go = threading.Event()


def aggregate():
    go.wait()
    sum(range(ENOUGH))  # <- holder


def look_at_files():
    for _ in range(200):
        os.stat("/")  # <- culprit


async def handler():
    with measured():
        go.set()
        look_at_files()


if __name__ == "__main__":
    threading.Thread(target=aggregate, name="aggregator").start()
    run(handler)
