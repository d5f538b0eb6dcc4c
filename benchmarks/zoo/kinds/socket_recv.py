"""A handler receives from a blocking socket."""

from __future__ import annotations

import socket
import threading

from zoo.stage import measured, run

EXPECT = {"cause": ["network-io"], "loops": "all"}


def receive(connection):
    return connection.recv(100)  # <- culprit


async def handler():
    ours, theirs = socket.socketpair()
    with ours, theirs, measured():
        threading.Timer(0.3, theirs.send, [b"hello"]).start()
        receive(ours)


if __name__ == "__main__":
    run(handler)
