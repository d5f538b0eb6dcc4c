"""A protocol's data_received blocks."""

from __future__ import annotations

import asyncio
import socket
import time

from zoo.stage import measured, run

EXPECT = {"cause": ["sleep"]}


class Feed(asyncio.Protocol):
    def __init__(self, done):
        self.done = done

    def data_received(self, data):
        with measured():
            self.store(data)
            self.done.set_result(None)

    def store(self, data):
        time.sleep(0.3)  # <- culprit


async def handler():
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    done = loop.create_future()
    transport, _ = await loop.connect_accepted_socket(lambda: Feed(done), ours)
    theirs.send(b"tick")
    await done
    transport.close()
    theirs.close()


if __name__ == "__main__":
    run(handler)
