"""Requests a second of a trio TCP echo server with loopcanary and without.

As tcp_echo.py does it for asyncio: both servers live at the same time on one core, and the client, on another
core, loads them in turns.
"""

from __future__ import annotations

import os

import trio
from harness import table
from harness.children import DRIVER_CPU, alternate, pair, start_watching, tell
from tcp_echo import PROCESSES, SLICES, Client


async def echo(stream: trio.SocketStream) -> None:
    """Sends back what it reads, until the client closes."""
    async with stream:
        while data := await stream.receive_some(4096):
            await stream.send_all(data)


async def serve() -> None:
    """One server on a free port, until our input ends."""
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, echo, 0)
        tell(listeners[0].socket.getsockname()[1])
        await trio.lowlevel.wait_readable(0)
        nursery.cancel_scope.cancel()


def child(role: str) -> None:
    """Serves until its input ends; greets with its port."""
    del role
    start_watching()
    trio.run(serve)


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
    table.ratio_at_least("trio TCP echo, requests/s", table.Ratio.of(rates), 0.99, note=note)
    note = f"{min(plain for plain, _ in costs) / 1000:.1f} us of CPU each without"
    table.told("trio TCP echo, requests per CPU second", table.Ratio.of(costs), note=note)


if __name__ == "__main__":
    table.run(measure, child)
