"""A Python loop that never ends; killed in it."""

from __future__ import annotations

from zoo.stage import measured, run

EXPECT = {"cause": ["cpu"], "killed": True}


def find_free_slot(slots):
    slot = 0
    while slots[slot % len(slots)]:  # <- culprit
        slot += 1  # <- culprit
    return slot


async def handler():
    with measured():
        find_free_slot([True] * 8)


if __name__ == "__main__":
    run(handler)
