"""The process is stopped by SIGSTOP in a short callback, and goes on later."""

from __future__ import annotations

import os
import time

from zoo.stage import child, measured, run

EXPECT = {"cause": ["host"]}
STOPPER = f"read _; kill -STOP {os.getpid()}; sleep 0.4; kill -CONT {os.getpid()}"


def add_up():
    until = time.thread_time() + 0.06
    while time.thread_time() < until:
        pass


async def handler():
    its_input, ours = os.pipe()  # uvloop's transports do not tell the pipe's number
    async with child("sh", "-c", STOPPER, stdin=its_input):
        with measured():
            os.write(ours, b"\n")
            add_up()


if __name__ == "__main__":
    run(handler)
