"""A handler connects to a server that does not accept."""

from __future__ import annotations

import socket

from zoo.stage import measured, run

EXPECT = {"cause": ["network-io"]}


def connect(address):
    try:
        socket.create_connection(address, timeout=0.3).close()  # <- culprit
    except TimeoutError:
        pass


async def handler():
    with measured():
        connect(SERVER.getsockname())


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0), backlog=0) as SERVER:
        waiting = [socket.socket() for _ in range(4)]  # they fill the queue of the server
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(SERVER.getsockname())
        run(handler)
        for one in waiting:
            one.close()
