"""A FastAPI service of books uses PyMongo, and some of its queries take long."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
import time
import urllib.request

import anyio._backends._asyncio  # noqa: F401  # the first request would import it on the loop
import bson
import uvicorn
from fastapi import FastAPI, Request
from pymongo import MongoClient

BOOKS = [{"_id": str(number), "title": f"Volume {number}", "author": "Cervantes"} for number in range(100)]
app = FastAPI()


@app.get("/books")
def list_books(request: Request):
    books = list(request.app.database["books"].find(limit=100))
    return books


@app.get("/health")
async def health():
    return "ok"


class Server(threading.Thread):
    """In place of MongoDB: knows two commands, and finds slowly."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]

    def run(self) -> None:
        while True:
            connection, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection, connection.makefile("rb") as stream:
            while head := stream.read(16):
                length, number, _, code = struct.unpack("<iiii", head)
                body = stream.read(length - 16)
                if code == 2004:  # OP_QUERY, with which a client says hello
                    start = body.index(b"\0", 4) + 9
                    document = bson.encode(self.answer(bson.decode(body[start:])))
                    reply = struct.pack("<iqii", 8, 0, 0, 1) + document
                    code = 1
                else:  # OP_MSG
                    size = struct.unpack_from("<i", body, 5)[0]
                    document = bson.encode(self.answer(bson.decode(body[5 : 5 + size])))
                    reply = struct.pack("<iB", 0, 0) + document
                connection.sendall(struct.pack("<iiii", 16 + len(reply), 1, number, code) + reply)

    def answer(self, command: dict) -> dict:
        if "find" in command:
            time.sleep(1.5)
            return {"cursor": {"id": 0, "ns": "shop.books", "firstBatch": BOOKS}, "ok": 1.0}
        return {
            "ismaster": True,
            "isWritablePrimary": True,
            "helloOk": True,
            "maxBsonObjectSize": 16_777_216,
            "maxMessageSizeBytes": 48_000_000,
            "maxWriteBatchSize": 100_000,
            "minWireVersion": 0,
            "maxWireVersion": 21,
            "readOnly": False,
            "ok": 1.0,
        }


def visit(url: str) -> float:
    began = time.monotonic()
    with urllib.request.urlopen(url, timeout=60) as answer:
        answer.read()
    return time.monotonic() - began


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
    lists = asyncio.gather(*(asyncio.to_thread(visit, f"{url}/books") for _ in range(3)))
    await asyncio.sleep(0.7)
    healthy = await asyncio.to_thread(visit, f"{url}/health")
    took = await lists
    await asyncio.sleep(0.5)
    server.should_exit = True
    await serving
    beats.cancel()
    print(f"lists after {max(took):.1f} s, healthy after {healthy:.2f} s, worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    database = Server()
    database.start()
    app.database = MongoClient("127.0.0.1", database.port)["shop"]
    listener = socket.create_server(("127.0.0.1", 0))
    configuration = uvicorn.Config(app, log_level="warning")
    configuration.load()
    asyncio.run(main(configuration, listener))
