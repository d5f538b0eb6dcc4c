"""A handler sorts an array of numpy."""

from __future__ import annotations

import numpy as np
from zoo.stage import measured, run, sized

EXPECT = {"cause": ["native-cpu"], "needs": ["numpy"], "advice": ["to_thread"]}


def numbers(count):
    return np.random.default_rng(1).random(count)


def median(values):
    return np.sort(values, kind="stable")[len(values) // 2]  # <- culprit


async def handler():
    with measured():
        median(VALUES)


if __name__ == "__main__":
    VALUES = numbers(sized(lambda count: median(numbers(count)), 0.4, start=50_000))
    run(handler)
