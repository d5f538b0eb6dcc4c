"""A handler reads numbers from a table, most fields of which are none: an exception for each."""

from __future__ import annotations

from zoo.stage import measured, run, sized

EXPECT = {"cause": ["cpu"], "loops": "all"}


def parse(text):
    try:
        return int(text)  # <- culprit
    except ValueError:  # <- culprit
        return None  # <- culprit


def load(count):
    return [parse("n/a") for _ in range(count)]  # <- culprit


ENOUGH = sized(load, 0.3)


async def handler():
    with measured():
        load(ENOUGH)


if __name__ == "__main__":
    run(handler)
