"""A handler waits for the only connection of a pool, which a thread uses."""

from __future__ import annotations

import threading
import time

import urllib3
from zoo.servers import slow_http
from zoo.stage import measured, pause, run

EXPECT = {"cause": ["lock"], "needs": ["urllib3"], "advice": ["to_thread", "httpx", "asyncio", "aiohttp"]}
busy = threading.Event()


def use(pool):
    connection = pool._get_conn()
    busy.set()
    time.sleep(0.3)
    pool._put_conn(connection)


def ask(pool):
    pool.urlopen("GET", "/")  # <- culprit


async def handler():
    threading.Thread(target=use, args=[POOL]).start()
    while not busy.is_set():
        await pause(0.001)
    with measured():
        ask(POOL)


if __name__ == "__main__":
    with slow_http(seconds=0) as URL:
        POOL = urllib3.connection_from_url(URL, maxsize=1, block=True)
        run(handler)
