"""A handler sorts a large list; the C call holds the GIL."""

from __future__ import annotations

import random

from zoo.stage import measured, run, sized

EXPECT = {"cause": ["native-cpu"]}


def rank(numbers):
    return sorted(numbers)  # <- culprit


CHANCE = random.Random(1)
NUMBERS = [
    CHANCE.random() for _ in range(sized(lambda count: rank([CHANCE.random() for _ in range(count)]), 0.35))
]


async def handler():
    with measured():
        rank(NUMBERS)


if __name__ == "__main__":
    run(handler)
