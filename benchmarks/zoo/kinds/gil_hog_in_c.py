"""A thread in a C call that keeps the GIL; a handler waits for it where it lets go of the GIL."""

from __future__ import annotations

import hashlib
import threading

from zoo.stage import measured, run, sized

EXPECT = {"cause": ["gil"], "thread": ["aggregator"], "loops": "all"}
ENOUGH = sized(lambda count: sum(range(count)), 0.35, start=100_000)
go = threading.Event()


def aggregate():
    go.wait()
    sum(range(ENOUGH))  # <- holder


def check_upload(chunk):
    checksum = hashlib.sha256()
    for _ in range(20):
        checksum.update(chunk)  # <- culprit


async def handler():
    with measured():
        go.set()
        check_upload(bytes(200_000))


if __name__ == "__main__":
    threading.Thread(target=aggregate, name="aggregator").start()
    run(handler)
