"""Waits for any child there is, as a supervisor does, while notifications begin; tells what it met."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys

import loopcanary

met: list[int] = []
signals: list[int] = []
signal.signal(signal.SIGCHLD, lambda *told: signals.append(told[0]))


async def main():
    loopcanary.install()
    # Until the test says that the follower is at work.
    reader = asyncio.to_thread(sys.stdin.readline)
    task = asyncio.create_task(reader)
    while not task.done():
        try:
            met.append(os.waitpid(-1, os.WNOHANG)[0])  # noqa: ASYNC222 - supervisors do
        except ChildProcessError:
            met.append(-1)
        await asyncio.sleep(0.001)


asyncio.run(main())
loopcanary.uninstall()
sys.stdout.write(json.dumps({"met": sorted(set(met)), "signals": len(signals)}))
