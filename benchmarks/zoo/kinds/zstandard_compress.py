"""A handler compresses a large body by zstandard."""

from __future__ import annotations

import random

import zstandard
from zoo.stage import measured, run, sized

EXPECT = {"cause": ["native-cpu"], "needs": ["zstandard"], "advice": ["to_thread"]}


def packed(body):
    return zstandard.ZstdCompressor(level=12).compress(body)  # <- culprit


def body_of(count):
    return random.Random(1).randbytes(count)


async def handler():
    with measured():
        packed(BODY)


if __name__ == "__main__":
    BODY = body_of(sized(lambda count: packed(body_of(count)), 0.35, start=100_000))
    run(handler)
