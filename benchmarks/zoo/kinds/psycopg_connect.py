"""A handler connects to a server of PostgreSQL that does not answer."""

from __future__ import annotations

import psycopg
from zoo.servers import silent
from zoo.stage import measured, run

EXPECT = {
    "cause": ["network-io"],
    "needs": ["psycopg"],
    "advice": ["AsyncConnection", "asyncpg", "to_thread"],
}


def orders(port):
    try:
        return psycopg.connect(f"host=127.0.0.1 port={port} sslmode=disable")  # <- culprit
    except psycopg.OperationalError:
        return None


async def handler():
    with measured():
        orders(PORT)


if __name__ == "__main__":
    with silent() as PORT:
        run(handler)
