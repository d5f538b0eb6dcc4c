"""A peer-to-peer node logs its peers' statistics to a queue, and a thread sends them to the log collector."""

from __future__ import annotations

import asyncio
import logging
import logging.handlers
import pickle
import queue
import socket
import struct
import subprocess
import sys
import time

# The process that writes the logs of all the node's components to a slow disk.
COLLECTOR = """
import socket, sys, time
source = socket.socket(fileno=int(sys.argv[1]))
while source.recv(65536):
    time.sleep(0.2)
"""

logger = logging.getLogger("node.peers")


class IPCHandler(logging.Handler):
    """Sends each record to the collector."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__()
        self.sock = sock

    def emit(self, record: logging.LogRecord) -> None:
        message = pickle.dumps((record.name, record.levelno, self.format(record)))
        self.sock.sendall(struct.pack(">I", len(message)) + message)


class PeerPool:
    def __init__(self, count: int) -> None:
        self.peers = {f"peer-{number:03}": {f"command-{kind:02}": 0 for kind in range(320)} for number in range(count)}

    async def report_stats(self) -> None:
        for name, received in self.peers.items():
            logger.debug("%s: uptime=3m18s, received=%s", name, received)


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main() -> None:
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    pool = PeerPool(110)
    await asyncio.sleep(1)
    await pool.report_stats()
    await asyncio.sleep(1)
    beats.cancel()
    print(f"worst tick {max(late) * 1000:.0f} ms")


def run() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            number = theirs.fileno()
            collector = subprocess.Popen([sys.executable, "-c", COLLECTOR, str(number)], pass_fds=[number])
        logger.setLevel(logging.DEBUG)
        logger.propagate = False
        records: queue.SimpleQueue[logging.LogRecord] = queue.SimpleQueue()
        listener = logging.handlers.QueueListener(records, IPCHandler(ours))
        listener.start()
        logger.addHandler(logging.handlers.QueueHandler(records))
        asyncio.run(main())
        listener.stop()
    collector.wait()


if __name__ == "__main__":
    run()
