"""Requests a second of a TCP echo server on asyncio's loop and on uvloop, with loopcanary and without.

Both servers live at the same time on one core, and the client, on another core, loads them in turns of a
fifth of a second. The client keeps 20 connections with one request each under way, so that the server always
has work. The servers' CPU time per request is printed beside: it does not depend on what else the machine
is doing, where requests a second do.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from harness import table
from harness.children import DRIVER_CPU, Child, alternate, pair, start_watching, tell

CONNECTIONS = 20
REQUEST = b"x" * 128
SLICE_S = 0.2
SLICES = 8
PROCESSES = 8


class Echo(asyncio.Protocol):
    """Sends back what it gets."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keeps the transport."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Sends it back."""
        self._transport.write(data)


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Sends back what it reads, until the client closes."""
    while data := await reader.read(4096):
        writer.write(data)
        await writer.drain()
    writer.close()


def child(role: str) -> None:
    """Serves until it is killed; greets with its port."""
    shape, loop = role.split()
    start_watching()
    with asyncio.Runner(loop_factory=loop_factory(loop)) as runner:
        runner.run(serve(shape))


def loop_factory(loop: str) -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Makes loops of this kind; None for asyncio's own."""
    if loop == "asyncio":
        return None
    import uvloop

    return uvloop.new_event_loop


async def serve(shape: str) -> None:
    """One server on a free port."""
    if shape == "streams":
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
    else:
        server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1", 0)
    tell(server.sockets[0].getsockname()[1])
    # The end of our input is the end of the benchmark.
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(0, ended.set)
    await ended.wait()


class Client:
    """Connections to one server, with one request each."""

    def __init__(self, server: Child) -> None:
        self._server = server
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
        end = begin + SLICE_S
        done = 0
        for connection in self._sockets.values():
            connection.send(REQUEST)
        while time.perf_counter() < end:
            done += self._turn(again=True)
        took = time.perf_counter() - begin
        open_requests = CONNECTIONS
        while open_requests:
            open_requests -= self._turn(again=False)
        self.cpu_ns_per_request.append((self._server_cpu_ns() - cpu_ns) / (done + CONNECTIONS))
        return done / took

    def close(self) -> None:
        """Closes the connections."""
        for connection in self._sockets.values():
            connection.close()
        self._poll.close()

    def _turn(self, *, again: bool) -> int:
        ready = self._poll.poll()
        for descriptor, _ in ready:
            connection = self._sockets[descriptor]
            connection.recv(4096)
            if again:
                connection.send(REQUEST)
        return len(ready)

    def _server_cpu_ns(self) -> int:
        tasks = Path(f"/proc/{self._server.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks)


def measure() -> None:
    """Prints requests a second, and CPU time per request, for streams and protocols."""
    os.sched_setaffinity(0, {DRIVER_CPU})
    loops = ["asyncio", "uvloop"] if find_spec("uvloop") else ["asyncio"]
    for role in [f"{shape} {loop}" for loop in loops for shape in ("protocol", "streams")]:
        rates: list[tuple[float, float]] = []
        costs: list[tuple[float, float]] = []
        for _ in range(PROCESSES):
            with pair(role) as servers:
                watched, plain = clients = [Client(server) for server in servers]
                alternate(watched.load, plain.load, 2)  # warm
                for client in clients:
                    client.cpu_ns_per_request.clear()
                rates += alternate(watched.load, plain.load, SLICES)
                costs += zip(plain.cpu_ns_per_request, watched.cpu_ns_per_request, strict=True)
                for client in clients:
                    client.close()
        note = f"{max(plain for _, plain in rates):,.0f} requests/s without"
        name = "TCP echo, {}, {}".format(*role.split())
        table.ratio_at_least(f"{name}, requests/s", table.Ratio.of(rates), 0.99, note=note)
        note = f"{min(plain for plain, _ in costs) / 1000:.1f} us of CPU each without"
        table.told(f"{name}, requests per CPU second", table.Ratio.of(costs), note=note)


if __name__ == "__main__":
    table.run(measure, child)
