"""Requests a second of a gevent TCP echo server with loopcanary and without.

As tcp_echo.py does it for asyncio: both servers live at the same time on one core, and the client, on another
core, loads them in turns. Each request is two switches between a connection's greenlet and the hub.
"""

from __future__ import annotations

import os

import gevent.socket
from gevent.os import tp_read
from gevent.server import StreamServer
from harness import table
from harness.children import DRIVER_CPU, alternate, pair, start_watching, tell
from tcp_echo import PROCESSES, SLICES, Client


def echo(connection: gevent.socket.socket, address: object) -> None:
    """Sends back what it reads, until the client closes."""
    del address
    while data := connection.recv(4096):
        connection.sendall(data)


def child(role: str) -> None:
    """Serves until its input ends; greets with its port."""
    del role
    start_watching()
    server = StreamServer(("127.0.0.1", 0), echo)
    server.start()
    tell(server.server_port)
    tp_read(0, 1)
    server.stop()


def measure() -> None:
    """Prints requests a second, and CPU time per request."""
    os.sched_setaffinity(0, {DRIVER_CPU})
    rates: list[tuple[float, float]] = []
    costs: list[tuple[float, float]] = []
    for _ in range(PROCESSES):
        with pair("streams") as servers:
            watched, plain = clients = [Client(server) for server in servers]
            alternate(watched.load, plain.load, 2)  # warm
            for client in clients:
                client.cpu_ns_per_request.clear()
            rates += alternate(watched.load, plain.load, SLICES)
            costs += zip(plain.cpu_ns_per_request, watched.cpu_ns_per_request, strict=True)
            for client in clients:
                client.close()
    note = f"{max(plain for _, plain in rates):,.0f} requests/s without"
    table.ratio_at_least("gevent TCP echo, requests/s", table.Ratio.of(rates), 0.99, note=note)
    note = f"{min(plain for plain, _ in costs) / 1000:.1f} us of CPU each without"
    table.told("gevent TCP echo, requests per CPU second", table.Ratio.of(costs), note=note)


if __name__ == "__main__":
    table.run(measure, child)
