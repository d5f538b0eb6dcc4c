"""A handler joins two tables of pandas."""

from __future__ import annotations

import numpy as np
import pandas as pd
from zoo.stage import measured, run, sized

EXPECT = {"cause": ["native-cpu"], "needs": ["pandas", "numpy"], "advice": ["to_thread", "process"]}


def tables_of(count):
    key = np.random.default_rng(1).integers(0, count, count)
    return pd.DataFrame({"key": key, "stock": 1}), pd.DataFrame({"key": key[::-1], "price": 2.5})


def join(orders, prices):
    return len(orders.merge(prices, on="key"))  # <- culprit


async def handler():
    with measured():
        join(*TABLES)


if __name__ == "__main__":
    TABLES = tables_of(sized(lambda count: join(*tables_of(count)), 0.4, start=20_000))
    run(handler)
