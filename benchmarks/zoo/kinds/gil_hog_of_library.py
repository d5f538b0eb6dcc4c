"""A thread writes a report by orjson, which keeps the GIL; a handler waits for it."""

from __future__ import annotations

import hashlib
import threading

import orjson
from zoo.stage import measured, run, sized

EXPECT = {"cause": ["gil"], "thread": ["reporter"], "needs": ["orjson"]}
go, begun = threading.Event(), threading.Event()


def report(count):
    return orjson.dumps([{"sku": "4711", "price": 12.75}] * count)  # <- holder


def write_report(count):
    go.wait()
    begun.set()
    report(count)


def check_upload(chunk):
    checksum = hashlib.sha256()
    while not begun.is_set():
        checksum.update(chunk)  # <- culprit
    for _ in range(20):
        checksum.update(chunk)  # <- culprit


async def handler():
    with measured():
        go.set()
        check_upload(bytes(200_000))


if __name__ == "__main__":
    ENOUGH = sized(report, 0.35, start=50_000)
    threading.Thread(target=write_report, args=[ENOUGH], name="reporter").start()
    run(handler)
