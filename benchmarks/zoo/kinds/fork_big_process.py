"""A handler forks a big process again and again: the kernel copies its page tables."""

from __future__ import annotations

import mmap
import os
import time
import warnings

from zoo.stage import measured, run

# It makes a child; that the kernel computes for it is true as well.
EXPECT = {"cause": ["subprocess", "native-cpu"]}
SIZE = 1 << 30
CHILDREN = []
warnings.simplefilter("ignore", DeprecationWarning)


def save_snapshots(until):
    while time.monotonic() < until:
        child = os.fork()  # <- culprit
        if child == 0:
            time.sleep(60)  # until it is killed: what its end takes is not of this stall
            os._exit(0)
        CHILDREN.append(child)


async def handler():
    with measured():
        save_snapshots(time.monotonic() + 0.3)


if __name__ == "__main__":
    with mmap.mmap(-1, SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        for page in range(0, SIZE, mmap.PAGESIZE):
            memory[page] = 1
        run(handler)
        for child in CHILDREN:
            os.kill(child, 9)
            os.waitpid(child, 0)
