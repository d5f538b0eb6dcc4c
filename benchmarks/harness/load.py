"""Requests a second of a TCP server, with loopcanary and without.

Both servers live at the same time on one core, and the client, on another core, loads them in turns of a
fifth of a second. The client keeps 20 connections with one request each under way, so that the server always
has work. The servers' CPU time per request is printed beside: it does not depend on what else the machine
is doing, where requests a second do.
"""

from __future__ import annotations

import os
import select
import socket
import time
from pathlib import Path

from harness import table
from harness.children import DRIVER_CPU, Child, alternate, pair

CONNECTIONS = 20
ECHOED = b"x" * 128
SLICE_S = 0.2


def measure_server(
    name: str,
    role: str,
    *,
    budget: float = 0.99,
    request: bytes = ECHOED,
    answer_ends: bytes = b"x",
    processes: int = 8,
    slices: int = 8,
) -> None:
    """Prints requests a second, and CPU time per request.

    Args:
        name: What is measured.
        role: Of the children: a server each, which greets with its port.
        budget: The least that is left of the requests a second.
        request: What the client sends.
        answer_ends: An answer may come in parts; its last one ends so.
        processes: How many pairs of servers.
        slices: How often each of them is loaded.
    """
    os.sched_setaffinity(0, {DRIVER_CPU})
    processes, slices = table.sized(processes, 1), table.sized(slices, 2)
    rates: list[tuple[float, float]] = []
    costs: list[tuple[float, float]] = []
    for _ in range(processes):
        with pair(role) as servers:
            watched, plain = clients = [_Client(server, request, answer_ends) for server in servers]
            alternate(watched.load, plain.load, 2)  # warm
            for client in clients:
                client.cpu_ns_per_request.clear()
            rates += alternate(watched.load, plain.load, slices)
            costs += zip(plain.cpu_ns_per_request, watched.cpu_ns_per_request, strict=True)
            for client in clients:
                client.close()
    note = f"{max(plain for _, plain in rates):,.0f} requests/s without"
    table.ratio_at_least(f"{name}, requests/s", table.Ratio.of(rates), budget, note=note)
    note = f"{min(plain for plain, _ in costs) / 1000:.1f} us of CPU each without"
    table.told(f"{name}, requests per CPU second", table.Ratio.of(costs), note=note)


class _Client:
    """Connections to one server, with one request each under way."""

    def __init__(self, server: Child, request: bytes, answer_ends: bytes) -> None:
        self._server = server
        self._request = request
        self._answer_ends = answer_ends
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
            if connection.recv(4096).endswith(self._answer_ends):
                done += 1
                if again:
                    connection.send(self._request)
        return done

    def _server_cpu_ns(self) -> int:
        tasks = Path(f"/proc/{self._server.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks)
