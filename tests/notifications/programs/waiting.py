"""Waits for any child there is, as a supervisor does, while notifications begin; tells what it met."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys

met: list[int] = []
signals: list[int] = []
signal.signal(signal.SIGCHLD, lambda number, frame: signals.append(number))


async def main():
    # Until somebody says that the follower is at work.
    reader = asyncio.to_thread(sys.stdin.readline)
    task = asyncio.create_task(reader)
    while not task.done():
        try:
            met.append(os.waitpid(-1, os.WNOHANG)[0])
        except ChildProcessError:
            met.append(-1)
        await asyncio.sleep(0.001)


asyncio.run(main())
print(json.dumps({"met": sorted(set(met)), "signals": len(signals)}))
