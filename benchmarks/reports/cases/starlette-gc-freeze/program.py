"""A service with millions of long-lived objects, whose full garbage collections stop its loop."""

from __future__ import annotations

import asyncio
import collections
import socket
import time
import urllib.request

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route


class Entry:
    def __init__(self, number: int) -> None:
        self.number = number
        self.links: list[object] = [self.number, str(number)]
        self.scores = {"a": [number], "b": [number + 1]}


def warm_up() -> list[Entry]:
    return [Entry(number) for number in range(150_000)]


entries = warm_up()
sessions: collections.deque[list[Entry]] = collections.deque(maxlen=10)


async def answer(_request: Request) -> PlainTextResponse:
    session = []
    for part in range(10):
        session += [Entry(part) for _ in range(60)]
        await asyncio.sleep(0)
    sessions.append(session)
    return PlainTextResponse(str(len(entries) + len(session)))


app = Starlette(routes=[Route("/", answer)])


def visit(url: str) -> None:
    until = time.monotonic() + 6
    while time.monotonic() < until:
        urllib.request.urlopen(url, timeout=60).read()
        time.sleep(0.005)


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main(config: uvicorn.Config, web: socket.socket) -> None:
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=[web]))
    await asyncio.sleep(0.5)
    await asyncio.to_thread(visit, f"http://127.0.0.1:{web.getsockname()[1]}/")
    beats.cancel()
    server.should_exit = True
    await serving
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    listener = socket.create_server(("127.0.0.1", 0))
    configuration = uvicorn.Config(app, log_level="warning")
    configuration.load()
    asyncio.run(main(configuration, listener))
