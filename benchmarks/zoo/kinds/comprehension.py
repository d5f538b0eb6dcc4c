"""A handler computes in a list comprehension, which is a frame of its own up to Python 3.11."""

from __future__ import annotations

from zoo.stage import measured, run, sized

EXPECT = {"cause": ["cpu"], "loops": "all"}


def squares(count):
    return [number * number % 7 for number in range(count)]  # <- culprit


ENOUGH = sized(squares, 0.3)


async def handler():
    with measured():
        squares(ENOUGH)


if __name__ == "__main__":
    run(handler)
