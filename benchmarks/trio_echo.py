"""Requests a second of a trio TCP echo server with loopcanary and without.

harness/load.py says how.
"""

from __future__ import annotations

import trio
from harness import table
from harness.children import start_watching, tell
from harness.load import measure_server


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
    measure_server("trio TCP echo", "streams")


if __name__ == "__main__":
    table.run(measure, child)
