"""`python -m kills.victim SEED`: blocks its loop again and again, until it is killed.

The loop is the zoo's that ZOO_LOOP names. Each block is in a scene of its own, and on stdout there is a line
of JSON before and after it, with the monotonic clock.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import select
import sys
import threading
import time
from collections.abc import Callable

from zoo.loops import host

import loopcanary

SHORT_S, LONG_S = (0.0, 0.06), (0.13, 0.7)
"""Below and above the threshold of 100 ms."""
LONG_SHARE = 0.8


def sleeps(seconds: float) -> None:
    """Without the GIL."""
    time.sleep(seconds)


def waits_for_lock(seconds: float) -> None:
    """A lock that nobody gives back."""
    lock = threading.Lock()
    lock.acquire()
    lock.acquire(timeout=seconds)


def waits_for_pipe(seconds: float) -> None:
    """A pipe that nobody writes to."""
    reader, writer = os.pipe()
    try:
        select.select([reader], [], [], seconds)
    finally:
        os.close(reader)
        os.close(writer)


def computes(seconds: float) -> None:
    """Python."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        sum(range(1_000))


def matches(seconds: float) -> None:
    """C that keeps the GIL, for some 50 ms a call."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        re.match("(a+)+$", "a" * 20 + "b")


def hashes(seconds: float) -> None:
    """C that lets the GIL go."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 20_000)


BLOCKS: tuple[Callable[[float], None], ...] = (
    *(sleeps, waits_for_lock, waits_for_pipe),
    *(computes, matches, hashes),
)


def scene_of(number: int) -> str:
    """Of the block with that number."""
    return f"block {number}"


def say(*facts: object) -> None:
    """One line, whole: the kernel does not part what is so short."""
    os.write(1, (json.dumps(facts) + "\n").encode())


async def main() -> None:
    """Until it is killed."""
    chance, loop, number = random.Random(int(sys.argv[1])), host(), 0
    await loop.pause(0.01)
    while True:
        block = chance.choice(BLOCKS)
        seconds = chance.uniform(*(LONG_S if chance.random() < LONG_SHARE else SHORT_S))
        say("begin", number, block.__name__, time.monotonic_ns())
        with loopcanary.scene(scene_of(number)):
            block(seconds)
        say("end", number, block.__name__, time.monotonic_ns())
        number += 1
        await loop.pause(chance.choice((0.0, 0.001, 0.02)))


if __name__ == "__main__":
    host().run(main)
