"""One computing thread; a handler that only computes a checksum waits for the GIL each time."""

from __future__ import annotations

import hashlib
import threading

from zoo.stage import measured, run

EXPECT = {"cause": ["gil"], "thread": ["resizer"], "loops": "all"}
computing = True


def resize_images():
    pixels = 0
    while computing:  # <- holder
        pixels += 1  # <- holder


def check_upload(chunk):
    checksum = hashlib.sha256()
    for _ in range(90):
        checksum.update(chunk)  # <- culprit


async def handler():
    global computing
    with measured():
        threading.Thread(target=resize_images, name="resizer").start()
        check_upload(bytes(500_000))
        computing = False


if __name__ == "__main__":
    run(handler)
