"""A handler compresses a large page by Brotli."""

from __future__ import annotations

import random

import brotli
from zoo.stage import measured, run, sized

EXPECT = {"cause": ["native-cpu"], "needs": ["brotli"], "advice": ["to_thread"]}


def packed(body):
    return brotli.compress(body, quality=9)  # <- culprit


def body_of(count):
    return random.Random(1).randbytes(count).hex().encode()


async def handler():
    with measured():
        packed(BODY)


if __name__ == "__main__":
    BODY = body_of(sized(lambda count: packed(body_of(count)), 0.4, start=50_000))
    run(handler)
