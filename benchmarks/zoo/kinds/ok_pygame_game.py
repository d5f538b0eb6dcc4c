"""Control: a game at sixty frames a second, each with some milliseconds of work."""

from __future__ import annotations

import time

from zoo.stage import pause, run

EXPECT = {"control": True, "loops": ["pygame"]}


async def handler():
    for _ in range(180):
        until = time.thread_time() + 0.004
        while time.thread_time() < until:
            pass
        await pause(0)


if __name__ == "__main__":
    run(handler)
