"""A client of requests tries a service again that is not there, and sleeps in between."""

from __future__ import annotations

import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry
from zoo.servers import slow_http
from zoo.stage import measured, run

EXPECT = {
    "cause": ["sleep"],
    "needs": ["requests"],
    "advice": ["httpx", "aiohttp", "to_thread", "asyncio.sleep"],
}


def client():
    session = requests.Session()
    retry = Retry(total=2, backoff_factor=0.2, status_forcelist=[503], raise_on_status=False)
    session.mount("http://", HTTPAdapter(max_retries=retry))
    return session


def ask(session, url):
    try:
        session.get(url)  # <- culprit
    except requests.exceptions.RetryError:
        pass


async def handler():
    with measured():
        ask(SESSION, URL)


if __name__ == "__main__":
    with slow_http(503, seconds=0) as URL, client() as SESSION:
        run(handler)
