"""A C call that never ends and looks at no signal, holding the GIL; killed in it."""

from __future__ import annotations

import itertools

from zoo.stage import measured, run

EXPECT = {"cause": ["native-cpu"], "killed": True}


def total(prices):
    return sum(prices)  # <- culprit


async def handler():
    with measured():
        total(itertools.repeat(1.0))


if __name__ == "__main__":
    run(handler)
