"""A handler writes a large answer by orjson, which keeps the GIL."""

from __future__ import annotations

import orjson
from zoo.stage import measured, run, sized

EXPECT = {
    "cause": ["native-cpu"],
    "needs": ["orjson"],
    "advice": ["process", "pieces", "to_thread", "page", "bound"],
}


def rows(count):
    return [{"sku": "4711", "price": 12.75}] * count


def answer(found):
    return orjson.dumps(found)  # <- culprit


async def handler():
    with measured():
        answer(ROWS)


if __name__ == "__main__":
    ROWS = rows(sized(lambda count: answer(rows(count)), 0.35, start=50_000))
    run(handler)
