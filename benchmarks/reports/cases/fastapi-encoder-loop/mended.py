"""A FastAPI service answers with the prices of all its articles, from a plain endpoint."""

from __future__ import annotations

import asyncio
import socket
import time
import urllib.request

import anyio._backends._asyncio  # noqa: F401  # the first request would import it on the loop
import uvicorn
from fastapi import FastAPI
from fastapi.responses import ORJSONResponse

ROWS = [
    {"id": number, "name": f"article {number}", "cents": number % 999, "stock": number % 90, "unit": "kg", "sold": None}
    for number in range(30_000)
]

app = FastAPI()


def select_prices() -> list[dict]:
    """In place of a query of the database."""
    time.sleep(0.8)
    return ROWS


@app.get("/prices")
def prices():
    rows = select_prices()
    return ORJSONResponse(rows)


@app.get("/health")
async def health():
    return "ok"


def visit(url: str) -> int:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return len(answer.read())


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
    size = await asyncio.to_thread(visit, f"{url}/prices")
    await asyncio.sleep(1)
    server.should_exit = True
    await serving
    beats.cancel()
    print(f"{size} bytes, worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    listener = socket.create_server(("127.0.0.1", 0))
    configuration = uvicorn.Config(app, log_level="warning")
    configuration.load()
    asyncio.run(main(configuration, listener))
