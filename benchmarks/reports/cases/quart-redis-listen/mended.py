"""A Quart service streams the progress of a job to the browser, as a worker publishes it on a channel of Redis."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
import urllib.request

import redis.asyncio as redis
import uvicorn
from quart import Quart

PORT = 0  # of the broker, set before the service starts
app = Quart(__name__)


class Broker(threading.Thread):
    """In place of Redis and of the worker: answers few commands, and publishes to subscribers."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]

    def run(self) -> None:
        while True:
            connection, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection, connection.makefile("rb") as commands:
            while line := commands.readline():
                words = []
                for _ in range(int(line[1:])):
                    words.append(commands.read(int(commands.readline()[1:])).decode())
                    commands.readline()
                if words[0].upper() == "SUBSCRIBE":
                    connection.sendall(array("subscribe", words[1]) + b":1\r\n")
                    self.publish(connection, words[1])
                elif words[0].upper() == "UNSUBSCRIBE":
                    connection.sendall(array("unsubscribe", words[1]) + b":0\r\n")
                else:
                    connection.sendall(b"+OK\r\n")

    def publish(self, connection: socket.socket, channel: str) -> None:
        for text in ("25 %", "50 %", "75 %", "done"):
            time.sleep(0.5)
            connection.sendall(array("message", channel, text, size=3))


def array(*words: str, size: int = 3) -> bytes:
    parts = [f"*{size}\r\n"]
    parts += [f"${len(word.encode())}\r\n{word}\r\n" for word in words]
    return "".join(parts).encode()


@app.get("/progress")
async def progress():
    async def events():
        client = redis.Redis(host="127.0.0.1", port=PORT, decode_responses=True)
        channel = client.pubsub(ignore_subscribe_messages=True)
        await channel.subscribe("progress")
        async for message in channel.listen():
            yield f"data: {message['data']}\n\n"
            if message["data"] == "done":
                break
        await channel.aclose()

    return events(), {"Content-Type": "text/event-stream"}


@app.get("/health")
async def health():
    return "ok"


def visit(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read().decode()


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
    events = await asyncio.to_thread(visit, f"{url}/progress")
    await asyncio.sleep(1)
    server.should_exit = True
    await serving
    beats.cancel()
    print(f"{events.count('data:')} events, worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    broker = Broker()
    broker.start()
    PORT = broker.port
    listener = socket.create_server(("127.0.0.1", 0))
    configuration = uvicorn.Config(app, log_level="warning")
    configuration.load()
    asyncio.run(main(configuration, listener))
