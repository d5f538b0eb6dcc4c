"""Requests a second of a gevent TCP echo server with loopcanary and without.

harness/load.py says how. Each request is two switches between a connection's greenlet and the hub.
"""

from __future__ import annotations

import gevent.socket
from gevent.os import tp_read
from gevent.server import StreamServer
from harness import table
from harness.children import start_watching, tell
from harness.load import measure_server


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
    measure_server("gevent TCP echo", "streams")


if __name__ == "__main__":
    table.run(measure, child)
