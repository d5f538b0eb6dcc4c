"""Control: a busy loop, each callback 5 ms."""

from __future__ import annotations

import time

from zoo.stage import pause, run

# Not on gevent, where it would be a stall: see gevent_fifty.
EXPECT = {"control": True, "loops": ["asyncio", "uvloop", "trio", "pyside6", "pyqt6", "tk", "glib", "pygame"]}


async def handler():
    for _ in range(100):
        until = time.thread_time() + 0.005
        while time.thread_time() < until:
            pass
        await pause(0)


if __name__ == "__main__":
    run(handler)
