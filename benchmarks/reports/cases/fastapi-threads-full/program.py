"""Plain endpoints of a FastAPI service hold all threads of its pool, and the health check waits for one."""

from __future__ import annotations

import asyncio
import socket
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import anyio._backends._asyncio  # noqa: F401  # the first request would import it on the loop
import uvicorn
from fastapi import FastAPI

app = FastAPI()


@app.get("/chat")
def chat(number: int) -> str:
    """In place of a tool that is polled until it has an answer."""
    for _ in range(20):
        time.sleep(0.2)
    return f"answer {number}"


@app.get("/health")
def health() -> str:
    return "ok"


def visit(url: str) -> float:
    began = time.monotonic()
    with urllib.request.urlopen(url, timeout=60) as answer:
        answer.read()
    return time.monotonic() - began


def crowd(url: str) -> list[float]:
    with ThreadPoolExecutor(60) as visitors:
        answers = []
        for number in range(60):
            answers.append(visitors.submit(visit, f"{url}/chat?number={number}"))
            time.sleep(0.03)
        return [answer.result() for answer in answers]


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
    url = f"http://127.0.0.1:{web.getsockname()[1]}"
    chats = asyncio.create_task(asyncio.to_thread(crowd, url))
    await asyncio.sleep(2)
    print(f"healthy after {await asyncio.to_thread(visit, f'{url}/health'):.1f} s")
    print(f"answers after {min(await chats):.1f} s to {max(await chats):.1f} s")
    beats.cancel()
    server.should_exit = True
    await serving
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    listener = socket.create_server(("127.0.0.1", 0))
    configuration = uvicorn.Config(app, log_level="warning")
    configuration.load()
    asyncio.run(main(configuration, listener))
