"""A handler searches a list by an operator that calls a comparison written in Python."""

from __future__ import annotations

from zoo.stage import measured, run, sized

EXPECT = {"cause": ["cpu"], "loops": "all"}


class Position:
    def __init__(self, row):
        self.row = row

    def __eq__(self, other):
        return self.row == other.row  # <- culprit

    def __hash__(self):
        return self.row


def is_free(position, taken):
    return position not in taken  # <- culprit


TAKEN = [Position(7)] * sized(lambda count: is_free(Position(0), [Position(7)] * count), 0.3)


async def handler():
    with measured():
        is_free(Position(0), TAKEN)


if __name__ == "__main__":
    run(handler)
