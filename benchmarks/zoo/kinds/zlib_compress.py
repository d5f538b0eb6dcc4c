"""A handler compresses a large body; the C call lets go of the GIL."""

from __future__ import annotations

import random
import zlib

from zoo.stage import measured, run, sized

EXPECT = {"cause": ["native-cpu"], "loops": "all"}
CHANCE = random.Random(1)


def compress(body):
    return zlib.compress(body, 9)  # <- culprit


BODY = CHANCE.randbytes(sized(lambda size: compress(CHANCE.randbytes(size)), 0.3, start=100_000))


async def handler():
    with measured():
        compress(BODY)


if __name__ == "__main__":
    run(handler)
