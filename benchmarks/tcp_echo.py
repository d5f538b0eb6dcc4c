"""Requests a second of a TCP echo server on asyncio's loop and on uvloop, with loopcanary and without.

harness/load.py says how.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib.util import find_spec

from harness import table
from harness.children import start_watching, tell
from harness.load import measure_server


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


def measure() -> None:
    """Prints requests a second, and CPU time per request, for streams and protocols."""
    loops = ["asyncio", "uvloop"] if find_spec("uvloop") else ["asyncio"]
    for role in [f"{shape} {loop}" for loop in loops for shape in ("protocol", "streams")]:
        measure_server("TCP echo, {}, {}".format(*role.split()), role)


if __name__ == "__main__":
    table.run(measure, child)
