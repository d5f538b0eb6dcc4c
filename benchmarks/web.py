"""Requests a second of a Twisted TCP echo server, and of Starlette on uvicorn, with loopcanary and without.

As benchmarks/tcp_echo.py: both servers live at the same time on one core, and a client on another core loads
them in turns. Needs twisted, starlette and uvicorn; what is missing is left out.
"""

from __future__ import annotations

import os
import select
import socket
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

from harness import table
from harness.children import DRIVER_CPU, Child, alternate, pair, start_watching, tell

CONNECTIONS = 20
SLICE_S = 0.2
SLICES = 16
PROCESSES = 3
REQUESTS = {
    "twisted echo": b"x" * 128,
    "uvicorn, starlette": b"GET /orders/17 HTTP/1.1\r\nhost: bench\r\n\r\n",
}
BUDGETS = {"twisted echo": 0.96, "uvicorn, starlette": 0.99}
LIBRARIES = {"twisted echo": ("twisted",), "uvicorn, starlette": ("starlette", "uvicorn")}


def child(role: str) -> None:
    """Serves until it is killed; greets with its port."""
    # The end of our input is the end of the benchmark.
    Thread(target=lambda: os._exit(len(sys.stdin.read())), daemon=True).start()
    {"twisted echo": serve_twisted, "uvicorn, starlette": serve_uvicorn}[role]()


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
    import uvicorn
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    async def order(request: object) -> PlainTextResponse:  # noqa: ARG001 - as routes are called
        return PlainTextResponse("ok")

    # asyncio sends at once what is written to a socket that says that it is TCP. uvicorn makes such ones,
    # create_server not: an answer's body waited 40 ms for the client to acknowledge its head.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    tell(listening.getsockname()[1])
    app = Starlette(routes=[Route("/orders/{order_id}", order)])
    options = {"loop": "asyncio", "http": "h11", "log_level": "error", "access_log": False}
    uvicorn.Server(uvicorn.Config(app, **options)).run(sockets=[listening])


class Client:
    """Connections to one server, with one request each under way."""

    def __init__(self, server: Child, request: bytes) -> None:
        self._server = server
        self._request = request
        self._poll = select.epoll()
        self._sockets: dict[int, socket.socket] = {}
        for _ in range(CONNECTIONS):
            connection = socket.create_connection(("127.0.0.1", server.greeting))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._sockets[connection.fileno()] = connection
            self._poll.register(connection, select.EPOLLIN)
        self.cpu_ns_per_request: list[float] = []

    def load(self) -> float:
        """Loads the server for a slice of time; requests a second."""
        cpu_ns = self._server_cpu_ns()
        begin = time.perf_counter()
        done = 0
        for connection in self._sockets.values():
            connection.send(self._request)
        while time.perf_counter() < begin + SLICE_S:
            done += self._turn(again=True)
        took = time.perf_counter() - begin
        left = CONNECTIONS
        while left:
            left -= self._turn(again=False)
        self.cpu_ns_per_request.append((self._server_cpu_ns() - cpu_ns) / (done + CONNECTIONS))
        return done / took

    def close(self) -> None:
        """Closes the connections."""
        for connection in self._sockets.values():
            connection.close()
        self._poll.close()

    def _turn(self, *, again: bool) -> int:
        done = 0
        for descriptor, _ in self._poll.poll():
            connection = self._sockets[descriptor]
            answer = connection.recv(4096)
            # An answer may come as its head and its body.
            if answer.endswith((b"ok", b"x")):
                done += 1
                if again:
                    connection.send(self._request)
        return done

    def _server_cpu_ns(self) -> int:
        tasks = Path(f"/proc/{self._server.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks)


def measure() -> None:
    """Prints requests a second, and CPU time per request."""
    os.sched_setaffinity(0, {DRIVER_CPU})
    for role, request in REQUESTS.items():
        if any(find_spec(library) is None for library in LIBRARIES[role]):
            print(f"{role}: not installed")
            continue
        rates: list[tuple[float, float]] = []
        costs: list[tuple[float, float]] = []
        for _ in range(PROCESSES):
            with pair(role) as servers:
                watched, plain = clients = [Client(server, request) for server in servers]
                alternate(watched.load, plain.load, 2)  # warm
                for client in clients:
                    client.cpu_ns_per_request.clear()
                rates += alternate(watched.load, plain.load, SLICES)
                costs += zip(plain.cpu_ns_per_request, watched.cpu_ns_per_request, strict=True)
                for client in clients:
                    client.close()
        note = f"{max(plain for _, plain in rates):,.0f} requests/s without"
        table.ratio_at_least(f"{role}, requests/s", table.Ratio.of(rates), BUDGETS[role], note=note)
        note = f"{min(plain for plain, _ in costs) / 1000:.1f} us of CPU each without"
        table.told(f"{role}, requests per CPU second", table.Ratio.of(costs), note=note)


if __name__ == "__main__":
    table.run(measure, child)
