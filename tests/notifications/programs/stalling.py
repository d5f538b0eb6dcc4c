"""Stalls as often, and for as many ms, as it is told; then waits for a line, or is killed while it stalls."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time

from loopcanary.assembly import kept

kept.END_PATIENCE_S = 60  # a keeper on a busy host
times, milliseconds, end = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]


async def stall(seconds):
    time.sleep(seconds)  # noqa: ASYNC251 - what it is for


async def killed():
    os.write(1, b"stalls\n")
    sys.stdin.readline()
    os.kill(os.getpid(), signal.SIGKILL)


async def main():
    for _ in range(times):
        await asyncio.create_task(stall(milliseconds / 1_000))
        await asyncio.sleep(0)
    os.write(1, b"has stalled\n")
    if end == "wait":
        await asyncio.to_thread(sys.stdin.readline)
    elif end == "killed":
        await asyncio.create_task(killed())


asyncio.run(main())
