"""A handler connects to a server of MySQL that does not answer."""

from __future__ import annotations

import pymysql
from zoo.servers import silent
from zoo.stage import measured, run

EXPECT = {"cause": ["network-io"], "needs": ["PyMySQL"], "advice": ["aiomysql", "asyncmy", "to_thread"]}


def orders(port):
    try:
        return pymysql.connect(host="127.0.0.1", port=port)  # <- culprit
    except pymysql.OperationalError:
        return None


async def handler():
    with measured():
        orders(PORT)


if __name__ == "__main__":
    with silent() as PORT:
        run(handler)
