"""A handler expands formulas by sympy."""

from __future__ import annotations

import sympy
from sympy.core.cache import clear_cache
from zoo.stage import measured, run, sized

EXPECT = {"cause": ["cpu"], "needs": ["sympy"], "advice": ["process", "to_thread", "sleep(0)"]}
x, y = sympy.symbols("x y")


def expanded(count):
    return [sympy.expand((x + number * y) ** 8) for number in range(1, count)]  # <- culprit


def new(count):
    clear_cache()
    return expanded(count)


async def handler():
    with measured():
        expanded(COUNT)


if __name__ == "__main__":
    COUNT = sized(new, 0.35, start=4)
    clear_cache()
    run(handler)
