"""A handler writes to a database that another connection has locked; SQLite sleeps and tries again."""

from __future__ import annotations

import sqlite3
import tempfile
import threading
import time

from zoo.stage import measured, run

# What it waits for is a lock; how it waits is to sleep.
EXPECT = {"cause": ["lock", "sleep"], "loops": "all"}


def migrate(path, taken):
    other = sqlite3.connect(path)
    other.execute("begin exclusive")
    taken.set()
    time.sleep(0.3)
    other.rollback()
    other.close()


def save(database):
    database.execute("insert into orders values (1)")  # <- culprit
    database.rollback()


async def handler():
    taken = threading.Event()
    with measured():
        threading.Thread(target=migrate, args=[PATH, taken]).start()
        taken.wait()
        save(DATABASE)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        PATH = folder + "/orders.db"
        DATABASE = sqlite3.connect(PATH, timeout=10)
        DATABASE.execute("create table orders (number)")
        DATABASE.commit()
        run(handler)
        DATABASE.close()
