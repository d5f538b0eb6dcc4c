"""Hangs for ever in one callback and says on stdout when it is about to.

    hangs.py KIND

A line on stdin makes it die by itself, where the hang leaves other threads a chance.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import re
import signal
import sys
import threading
import time


def ready():
    sys.stdout.write("ready\n")
    sys.stdout.flush()


def endless_regex():
    ready()
    re.match("(a+)+$", "a" * 60 + "b")  # culprit


def endless_sleep():
    ready()
    time.sleep(1e6)  # culprit


def deadlock():
    lock = threading.Lock()
    lock.acquire()
    ready()
    lock.acquire()  # culprit


def die_by_a_wild_pointer():
    sys.stdin.readline()
    ctypes.string_at(1)


def exit_at_once(number, frame):
    os._exit(7)


async def main(hang):
    await asyncio.create_task(call(hang), name=f"task of {hang.__name__}")


async def call(hang):
    hang()


if __name__ == "__main__":
    threading.Thread(target=die_by_a_wild_pointer, daemon=True).start()
    signal.signal(signal.SIGUSR1, exit_at_once)
    asyncio.run(main(globals()[sys.argv[1]]))
