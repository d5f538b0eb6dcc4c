"""A handler copies a large structure: pure Python of the standard library."""

from __future__ import annotations

import copy

from zoo.stage import measured, run, sized

EXPECT = {"cause": ["cpu"]}


def snapshot(orders):
    return copy.deepcopy(orders)  # <- culprit


def orders(count):
    return [{"id": number, "lines": [number, number]} for number in range(count)]


ORDERS = orders(sized(lambda count: snapshot(orders(count)), 0.3))


async def handler():
    with measured():
        snapshot(ORDERS)


if __name__ == "__main__":
    run(handler)
