"""A handler connects by SSH; paramiko reads the server's answer in a thread of its own."""

from __future__ import annotations

import logging

import paramiko
from zoo.servers import silent
from zoo.stage import measured, run

EXPECT = {"cause": ["lock", "network-io"], "needs": ["paramiko"], "advice": ["asyncssh", "to_thread"]}


def connect(port):
    client = paramiko.SSHClient()
    try:
        client.connect("127.0.0.1", port, username="shop", password="secret")  # <- culprit
    except paramiko.SSHException:
        client.close()


async def handler():
    with measured():
        connect(PORT)


if __name__ == "__main__":
    logging.disable()
    with silent() as PORT:
        run(handler)
