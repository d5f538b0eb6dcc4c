"""A handler asks another service by httpx, not awaited."""

from __future__ import annotations

import httpx
from zoo.servers import slow_http
from zoo.stage import measured, run

EXPECT = {"cause": ["network-io"], "needs": ["httpx"], "advice": ["AsyncClient"]}


def quote(client, url):
    return client.get(url).status_code  # <- culprit


async def handler():
    with measured():
        quote(CLIENT, URL)


if __name__ == "__main__":
    with slow_http() as URL, httpx.Client() as CLIENT:
        run(handler)
