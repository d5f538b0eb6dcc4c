"""A handler reads from a child's pipe."""

from __future__ import annotations

import asyncio
import os
import subprocess

from zoo.stage import measured, run

EXPECT = {"cause": ["subprocess"]}


def next_line(child):
    return os.read(child.stdout.fileno(), 100)  # <- culprit


async def handler():
    with measured():
        child = subprocess.Popen(["sh", "-c", "sleep 0.3; echo done"], stdout=subprocess.PIPE)
        next_line(child)
    await asyncio.sleep(0)
    child.wait()
    child.stdout.close()


if __name__ == "__main__":
    run(handler)
