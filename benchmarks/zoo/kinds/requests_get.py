"""A handler asks another service by requests."""

from __future__ import annotations

import requests
from zoo.servers import slow_http
from zoo.stage import measured, run

EXPECT = {"cause": ["network-io"], "needs": ["requests"], "advice": ["httpx", "aiohttp", "to_thread"]}


def stock_of(url):
    return requests.get(url, timeout=5).status_code  # <- culprit


async def handler():
    with measured():
        stock_of(URL)


if __name__ == "__main__":
    with slow_http() as URL:
        run(handler)
