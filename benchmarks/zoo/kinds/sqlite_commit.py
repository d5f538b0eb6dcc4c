"""A handler commits each order by itself: SQLite waits for the disk, and the kernel works for it."""

from __future__ import annotations

import os
import sqlite3
import tempfile
import time

from zoo.stage import measured, run

EXPECT = {"cause": ["disk-io"]}


def store_each(database, until):
    number = 0
    while time.monotonic() < until:
        number += 1
        database.execute("INSERT INTO orders VALUES (?, ?)", (number, "new"))
        database.commit()  # <- culprit


async def handler():
    with measured():
        store_each(DATABASE, time.monotonic() + 0.3)


if __name__ == "__main__":
    with tempfile.NamedTemporaryFile(dir=os.environ.get("ZOO_DISK")) as file:
        DATABASE = sqlite3.connect(file.name)
        DATABASE.execute("CREATE TABLE orders (number, state)")
        run(handler)
        DATABASE.close()
