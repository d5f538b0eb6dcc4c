"""A handler reads a large file that is not in memory."""

from __future__ import annotations

import os
import tempfile
import time

from zoo.stage import measured, run

EXPECT = {"cause": ["disk-io"]}
SIZE = 256 << 20


def read_all(file, until):
    while time.monotonic() < until:
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.pread(file, SIZE, 0)  # <- culprit


async def handler():
    with measured():
        read_all(FILE.fileno(), time.monotonic() + 0.3)


if __name__ == "__main__":
    with tempfile.TemporaryFile(dir=os.environ.get("ZOO_DISK")) as FILE:
        for _ in range(SIZE >> 20):
            FILE.write(os.urandom(1 << 20))
        FILE.flush()
        os.fsync(FILE.fileno())
        run(handler)
