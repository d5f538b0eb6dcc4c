"""Visits the shop for a while: one health check after the other, and beside them what the shop is slow at.

usage: load.py URL SECONDS

Tells how long the health checks took: they do no work, so what they wait for is other people's requests.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import time

import aiohttp

SECOND_MS = 1000


def catalog(products: int) -> bytes:
    fresh = (
        {
            "sku": f"sku-{number}",
            "name": f"product {number}",
            "tags": ["new", str(number)],
            "sizes": [[1], [2]],
        }
        for number in range(products)
    )
    return json.dumps(list(fresh)).encode()


VISITS = (
    ("GET", "/price/sku-7", b""),
    ("GET", "/stock/sku-7", b""),
    ("POST", "/contact", b"aaaaaaaaaaaaaaaaaaaaa!"),
    ("GET", "/recommended", b""),
    ("GET", "/report", b""),
    ("GET", "/label/1001", b""),
    ("POST", "/orders", b'{"sku": "sku-7", "count": 1}\n' * 200),
    ("POST", "/catalog", catalog(80_000)),
)


async def check_health(session: aiohttp.ClientSession, until: float) -> list[float]:
    """Milliseconds that each check took."""
    durations = []
    while (began := time.monotonic()) < until:
        async with session.get("/health") as answer:
            await answer.read()
        durations.append((time.monotonic() - began) * SECOND_MS)
        await asyncio.sleep(0.01)
    return durations


async def visit(session: aiohttp.ClientSession, until: float) -> None:
    for method, path, body in itertools.cycle(VISITS):
        if time.monotonic() >= until:
            return
        async with session.request(method, path, data=body or None) as answer:
            await answer.read()
        await asyncio.sleep(0.15)


async def main(url: str, seconds: float) -> None:
    until = time.monotonic() + seconds
    async with aiohttp.ClientSession(url) as session:
        durations, _ = await asyncio.gather(check_health(session, until), visit(session, until))
    durations.sort()
    middle, worst = durations[len(durations) // 2], durations[-1]
    print(f"{len(durations)} health checks: half of them within {middle:.0f} ms, the slowest {worst:.0f} ms")


asyncio.run(main(sys.argv[1], float(sys.argv[2])))
