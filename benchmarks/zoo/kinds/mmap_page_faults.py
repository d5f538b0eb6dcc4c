"""A handler looks into a mapped file that is not in memory: it waits without a system call."""

from __future__ import annotations

import mmap
import os
import tempfile

from zoo.stage import measured, run

EXPECT = {"cause": ["disk-io"]}
SIZE = 64 << 20


def look_up(index):
    return sum(index[place] for place in range(0, SIZE, mmap.PAGESIZE))  # <- culprit


async def handler():
    with measured():
        look_up(INDEX)


if __name__ == "__main__":
    with tempfile.TemporaryFile(dir=os.environ.get("ZOO_DISK")) as FILE:
        for _ in range(SIZE >> 20):
            FILE.write(os.urandom(1 << 20))
        FILE.flush()
        os.fsync(FILE.fileno())
        os.posix_fadvise(FILE.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        with mmap.mmap(FILE.fileno(), SIZE, prot=mmap.PROT_READ) as INDEX:
            INDEX.madvise(mmap.MADV_RANDOM)
            run(handler)
