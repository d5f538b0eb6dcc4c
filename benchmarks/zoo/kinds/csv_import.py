"""A handler reads a long table by csv, row by row."""

from __future__ import annotations

import csv
import io

from zoo.stage import measured, run, sized

EXPECT = {"cause": ["cpu"], "advice": ["process", "to_thread", "sleep(0)", "pieces"]}


def table_of(count):
    return "sku,price,stock\n" + "4711,12.75,300\n" * count


def load(table):
    stock = {}
    for row in csv.DictReader(io.StringIO(table)):  # <- culprit
        key = row["sku"]  # <- culprit
        stock[key] = stock.get(key, 0) + int(row["stock"])  # <- culprit
    return stock


async def handler():
    with measured():
        load(TABLE)


if __name__ == "__main__":
    TABLE = table_of(sized(lambda count: load(table_of(count)), 0.35))
    run(handler)
