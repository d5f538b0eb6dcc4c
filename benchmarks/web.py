"""Requests a second of a Twisted TCP echo server, of Starlette on uvicorn, and of a FastAPI service whose own
code is traced, with loopcanary and without.

harness/load.py says how. Needs twisted, starlette, fastapi and uvicorn; what is missing is left out.
"""

from __future__ import annotations

import os
import socket
import sys
from importlib.util import find_spec
from threading import Thread
from typing import Any

from harness import table
from harness.children import start_watching, tell
from harness.load import measure_server

TRACED = "uvicorn, fastapi, traced"
REQUEST = b"GET /orders/17 HTTP/1.1\r\nhost: bench\r\n\r\n"


def child(role: str) -> None:
    """Serves until it is killed; greets with its port."""
    # The end of our input is the end of the benchmark.
    Thread(target=lambda: os._exit(len(sys.stdin.read())), daemon=True).start()
    {"twisted echo": serve_twisted, "uvicorn, starlette": serve_uvicorn, TRACED: serve_fastapi}[role]()


def serve_twisted() -> None:
    """An echo protocol on the reactor that Twisted chooses."""
    start_watching()
    from twisted.internet import protocol, reactor

    class Echo(protocol.Protocol):
        def dataReceived(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
            self.transport.write(data)

    port = reactor.listenTCP(0, protocol.Factory.forProtocol(Echo), interface="127.0.0.1")
    reactor.callWhenRunning(tell, port.getHost().port)
    reactor.run()


def serve_uvicorn() -> None:
    """One route, on an asyncio loop and uvicorn's own parser."""
    start_watching()
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    async def order(request: object) -> PlainTextResponse:  # noqa: ARG001 - as routes are called
        return PlainTextResponse("ok")

    serve(Starlette(routes=[Route("/orders/{order_id}", order)]))


def serve_fastapi() -> None:
    """One route, which calls thirty functions of the program's own, all traced."""
    start_watching(methods=(".",))
    from fastapi import FastAPI

    app = FastAPI()

    def price(item: int) -> int:
        return max(item * 3, 7)

    def total(items: range) -> int:
        return sum(price(item) for item in items)

    @app.get("/orders/{order_id}")
    async def order(order_id: int) -> str:
        return "ok" if total(range(order_id, order_id + 14)) else "nothing"

    serve(app)


def serve(app: Any) -> None:
    """On uvicorn, until it is killed."""
    import uvicorn

    # asyncio sends at once what is written to a socket that says that it is TCP. uvicorn makes such ones,
    # create_server not: an answer's body waited 40 ms for the client to acknowledge its head.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    tell(listening.getsockname()[1])
    options = {"loop": "asyncio", "http": "h11", "log_level": "error", "access_log": False}
    uvicorn.Server(uvicorn.Config(app, **options)).run(sockets=[listening])


def measure() -> None:
    """Prints requests a second, and CPU time per request."""
    few = {"processes": 3, "slices": 16}
    if installed("twisted"):
        measure_server("twisted echo", "twisted echo", budget=0.96, **few)
    if installed("starlette", "uvicorn"):
        name = "uvicorn, starlette"
        measure_server(name, name, request=REQUEST, answer_ends=b"ok", **few)
    if installed("fastapi", "uvicorn"):
        measure_server(TRACED, TRACED, budget=0.97, request=REQUEST, answer_ends=b'"ok"', **few)


def installed(*libraries: str) -> bool:
    """Whether all are; else it is said."""
    missing = [name for name in libraries if find_spec(name) is None]
    if missing:
        print(f"{', '.join(missing)}: not installed")
    return not missing


if __name__ == "__main__":
    table.run(measure, child)
