"""A C function calls back into slow Python."""

from __future__ import annotations

from zoo.stage import measured, run, sized

EXPECT = {"cause": ["cpu"], "loops": "all"}


def score(item):
    total = 0
    for digit in str(item) * 40:  # <- culprit
        total += ord(digit)  # <- culprit
    return total  # <- culprit


def rank(count):
    return sorted(range(count), key=score)


ENOUGH = sized(rank, 0.3)


async def handler():
    with measured():
        rank(ENOUGH)


if __name__ == "__main__":
    run(handler)
