"""A handler looks for the most similar name by rapidfuzz, an extension by Cython."""

from __future__ import annotations

import rapidfuzz.process
from zoo.stage import measured, run, sized

EXPECT = {"cause": ["native-cpu"], "needs": ["rapidfuzz"], "advice": ["process", "pieces", "to_thread"]}


def names(count):
    return [f"correct horse battery staple number {number}" for number in range(count)]


def closest(name, known):
    return rapidfuzz.process.extractOne(name, known)  # <- culprit


async def handler():
    with measured():
        closest("horse, battery and staple 4711", NAMES)


if __name__ == "__main__":
    NAMES = names(sized(lambda count: closest("horse, battery and staple 4711", names(count)), 0.45))
    run(handler)
