"""A handler reads a table by pandas: a parser in C."""

from __future__ import annotations

import io

import pandas as pd
from zoo.stage import measured, run, sized

EXPECT = {"cause": ["native-cpu"], "needs": ["pandas"], "advice": ["to_thread", "process"]}


def table_of(count):
    return "sku,price,stock\n" + "4711,12.75,300\n" * count


def load(table):
    return len(pd.read_csv(io.StringIO(table)))  # <- culprit


async def handler():
    with measured():
        load(TABLE)


if __name__ == "__main__":
    TABLE = table_of(sized(lambda count: load(table_of(count)), 0.35, start=20_000))
    run(handler)
