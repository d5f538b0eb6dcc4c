"""A handler searches by many short calls that call each other."""

from __future__ import annotations

import time

from zoo.stage import measured, run

EXPECT = {"cause": ["cpu"], "loops": "all"}


def meets(column, row, other, taken):
    return taken == row or abs(taken - row) == column - other  # <- culprit


def fits(column, row, queens):
    return not any(meets(column, row, *queen) for queen in enumerate(queens))  # <- culprit


def search(size, queens, until):
    if time.thread_time() >= until:  # <- culprit
        return  # <- culprit
    for row in range(size):  # <- culprit
        if fits(len(queens), row, queens):  # <- culprit
            search(size, (*queens, row), until)  # <- culprit


async def handler():
    with measured():
        search(40, (), time.thread_time() + 0.3)


if __name__ == "__main__":
    run(handler)
