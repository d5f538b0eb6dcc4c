"""A handler draws a long table by rich."""

from __future__ import annotations

import io

from rich.console import Console
from rich.table import Table
from zoo.stage import measured, run, sized

EXPECT = {"cause": ["cpu"], "needs": ["rich"], "advice": ["process", "to_thread", "sleep(0)"]}


def table_of(count):
    table = Table("sku", "price")
    for number in range(count):
        table.add_row(str(number), "12.75")
    return table


def draw(table):
    Console(file=io.StringIO(), width=80).print(table)  # <- culprit


async def handler():
    with measured():
        draw(TABLE)


if __name__ == "__main__":
    TABLE = table_of(sized(lambda count: draw(table_of(count)), 0.4, start=50))
    run(handler)
