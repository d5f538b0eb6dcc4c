"""Control: hundreds of greenlets with a short piece of work each; the hub looks for I/O in between."""

from __future__ import annotations

import time

import gevent
from zoo.stage import run

# gevent's loop leaves its queue of callbacks when it has run them for gevent.getswitchinterval(), some
# milliseconds: what is ready meanwhile waits for a few greenlets, not for all.
EXPECT = {"control": True, "loops": ["gevent"]}
COUNT = 600


def tiny():
    until = time.perf_counter() + 0.0005
    while time.perf_counter() < until:
        pass


async def handler():
    gevent.joinall([gevent.spawn(tiny) for _ in range(COUNT)])


if __name__ == "__main__":
    run(handler)
