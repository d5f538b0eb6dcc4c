"""A worker writes snapshots of its prices to Redis: each one in one transaction."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

from redis.asyncio import Redis

COUNT = 80_000

STORE = rb"""
import socket

listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
peer, _ = listener.accept()
head = b"*3\r\n$3\r\nSET\r\n"
end = b"*1\r\n$4\r\nEXEC\r\n"
held = b""
while piece := peer.recv(1 << 20):
    held += piece
    if held.endswith(end):
        count = held.count(head)
        peer.sendall(b"+OK\r\n" + b"+QUEUED\r\n" * count + b"*%d\r\n" % count + b"+OK\r\n" * count)
        held = b""
    elif not held.startswith(b"*1\r\n$5\r\nMULTI") and held.endswith(b"\r\n"):
        peer.sendall(b"+OK\r\n" * held.count(b"*"))
        held = b""
"""


def start_store() -> tuple[subprocess.Popen[bytes], int]:
    """Stands in for Redis: understands the few commands that the worker sends."""
    store = subprocess.Popen([sys.executable, "-c", STORE], stdout=subprocess.PIPE)
    return store, int(store.stdout.readline())


async def write_snapshot(store: Redis, prices: dict[str, str]) -> int:
    async with store.pipeline(transaction=True) as pipe:
        for number, (name, price) in enumerate(prices.items()):
            pipe.set(name, price)
            if number % 500 == 0:
                await asyncio.sleep(0)
        done = await pipe.execute()
    return len(done)


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main(port: int) -> None:
    store = Redis(host="127.0.0.1", port=port)
    await store.set("worker", "up")
    prices = {f"price:{number:06}": f"{number * 0.37:.2f}" for number in range(COUNT)}
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    for turn in range(2):
        await asyncio.sleep(0.7)
        print(f"snapshot {turn}: {await write_snapshot(store, prices)} prices written")
    beats.cancel()
    await store.aclose()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    process, where = start_store()
    asyncio.run(main(where))
    process.stdout.close()
    process.wait()
