"""A handler looks whether a long list has an element: an operator, in C, with the GIL."""

from __future__ import annotations

from zoo.stage import measured, run, sized

EXPECT = {"cause": ["native-cpu"], "advice": ["set"], "loops": "all"}


def is_known(name, known):
    return name in known  # <- culprit


async def handler():
    with measured():
        is_known("eve", KNOWN)


if __name__ == "__main__":
    KNOWN = ["ada"] * sized(lambda count: is_known("eve", ["ada"] * count), 0.3, start=100_000)
    run(handler)
