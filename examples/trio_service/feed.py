"""A feed of prices on trio: three readers, and a checksum that should not be computed between their turns.

loopcanary run --threshold 50ms examples/trio_service/feed.py
"""

from __future__ import annotations

import hashlib

import trio

SECONDS = 2
PAGE = bytes(1 << 16)


def sign(page: bytes) -> str:
    """Slow on purpose: a key is derived anew for each page."""
    return hashlib.pbkdf2_hmac("sha256", page, b"feed", 200_000).hex()


async def read_prices(market: str, pages: trio.MemorySendChannel[tuple[str, bytes]]) -> None:
    while True:
        await trio.sleep(0.02)
        await pages.send((market, PAGE))


async def publish(pages: trio.MemoryReceiveChannel[tuple[str, bytes]]) -> None:
    count = 0
    async for market, page in pages:
        count += 1
        if count % 20 == 0:
            print(market, sign(page)[:16])


async def main() -> None:
    send, receive = trio.open_memory_channel[tuple[str, bytes]](100)
    with trio.move_on_after(SECONDS):
        async with trio.open_nursery() as nursery:
            for market in ("apples", "pears", "plums"):
                nursery.start_soon(read_prices, market, send, name=f"prices of {market}")
            nursery.start_soon(publish, receive)


if __name__ == "__main__":
    trio.run(main)
