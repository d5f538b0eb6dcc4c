"""A handler opens a named pipe that nobody writes to yet."""

from __future__ import annotations

import os
import tempfile
import threading
import time

from zoo.stage import measured, run

EXPECT = {"cause": ["disk-io"], "advice": ["to_thread", "O_NONBLOCK", "thread"]}


def write_late(path):
    time.sleep(0.3)
    os.close(os.open(path, os.O_WRONLY))


def commands(path):
    os.close(os.open(path, os.O_RDONLY))  # <- culprit


async def handler():
    threading.Thread(target=write_late, args=[PATH], name="writer").start()
    with measured():
        commands(PATH)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        PATH = f"{folder}/commands"
        os.mkfifo(PATH)
        run(handler)
