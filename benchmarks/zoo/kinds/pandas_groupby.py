"""A handler groups a table of pandas, with a function of its own for each group."""

from __future__ import annotations

import pandas as pd
from zoo.stage import measured, run, sized

EXPECT = {"cause": ["cpu"], "needs": ["pandas"], "advice": ["agg", "vector", "process", "to_thread"]}


def spread(prices):
    return prices.max() - prices.min()  # <- culprit


def table_of(count):
    return pd.DataFrame({"sku": range(count), "price": 2.5})


def spreads(table):
    return table.groupby("sku")["price"].apply(spread)  # <- culprit


async def handler():
    with measured():
        spreads(TABLE)


if __name__ == "__main__":
    TABLE = table_of(sized(lambda count: spreads(table_of(count)), 0.4, start=100))
    run(handler)
