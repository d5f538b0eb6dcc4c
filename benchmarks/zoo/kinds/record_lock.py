"""A handler waits for a part of a file that another process has locked by POSIX's record locks."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile

from zoo.stage import measured, run

EXPECT = {"cause": ["lock"]}
OTHER = """
import fcntl, sys, time
with open(sys.argv[1], "r+") as file:
    fcntl.lockf(file, fcntl.LOCK_EX, 100)
    print("locked", flush=True)
    sys.stdin.readline()
    time.sleep(0.3)
"""


def lock_header(file):
    fcntl.lockf(file, fcntl.LOCK_EX, 16)  # <- culprit


async def handler():
    with measured():
        os.write(GO.fileno(), b"\n")
        lock_header(FILE)


if __name__ == "__main__":
    with tempfile.NamedTemporaryFile() as FILE:
        words = [sys.executable, "-S", "-c", OTHER, FILE.name]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            GO = other.stdin
            other.stdout.readline()
            run(handler)
