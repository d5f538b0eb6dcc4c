"""A handler asks for a lock file again and again, by filelock."""

from __future__ import annotations

import tempfile

import filelock
from zoo.stage import measured, run

EXPECT = {
    "cause": ["sleep", "lock"],
    "needs": ["filelock"],
    "advice": ["AsyncFileLock", "asyncio.sleep", "to_thread"],
}


def update(path):
    try:
        filelock.FileLock(path).acquire(timeout=0.3)  # <- culprit
    except filelock.Timeout:
        pass


async def handler():
    with measured():
        update(PATH)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        PATH = f"{folder}/cache.lock"
        with filelock.FileLock(PATH):
            run(handler)
