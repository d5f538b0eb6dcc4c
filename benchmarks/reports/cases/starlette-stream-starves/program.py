"""A Starlette service streams a report, a line for each day."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import statistics
import time
import urllib.request
from collections.abc import AsyncIterator

import anyio._backends._asyncio  # noqa: F401  # the first request would import it on the loop
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route

RANDOM = random.Random(3)
READINGS = [[RANDOM.gauss(20, 4) for _ in range(240)] for _ in range(4_000)]


async def lines() -> AsyncIterator[str]:
    for day, readings in enumerate(READINGS):
        low, high = min(readings), max(readings)
        entry = {"day": day, "low": round(low, 1), "high": round(high, 1), "spread": statistics.pstdev(readings)}
        yield json.dumps(entry) + "\n"


async def report(_request: Request) -> StreamingResponse:
    return StreamingResponse(lines(), media_type="application/x-ndjson")


async def health(_request: Request) -> PlainTextResponse:
    return PlainTextResponse("ok")


app = Starlette(routes=[Route("/report", report), Route("/health", health)])


def visit(url: str) -> int:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return len(answer.read().splitlines())


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
    await asyncio.sleep(1)
    url = f"http://127.0.0.1:{web.getsockname()[1]}"
    await asyncio.to_thread(visit, f"{url}/health")
    count = await asyncio.to_thread(visit, f"{url}/report")
    await asyncio.sleep(1)
    server.should_exit = True
    await serving
    beats.cancel()
    print(f"{count} lines, worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    listener = socket.create_server(("127.0.0.1", 0))
    configuration = uvicorn.Config(app, log_level="warning")
    configuration.load()
    asyncio.run(main(configuration, listener))
