"""A handler prints to a pipe whose reader, a child, is slow."""

from __future__ import annotations

import asyncio
import subprocess

from zoo.stage import measured, run

EXPECT = {"cause": ["subprocess"]}


def tell(progress, out):
    print(progress, file=out, flush=True)  # <- culprit


async def handler():
    with measured():
        pager = subprocess.Popen(["sh", "-c", "sleep 0.3; cat >/dev/null"], stdin=subprocess.PIPE, text=True)
        tell("." * 300_000, pager.stdin)
    await asyncio.sleep(0)
    pager.communicate()


if __name__ == "__main__":
    run(handler)
