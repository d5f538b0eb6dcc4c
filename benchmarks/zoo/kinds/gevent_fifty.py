"""Greenlets give way by sleep(0) after short work each; gevent runs fifty before it looks for I/O."""

from __future__ import annotations

import time

import gevent
from zoo.stage import begin, end, run

# gevent's loop looks at the clock after fifty callbacks; what is ready meanwhile waits for all of them.
EXPECT = {"cause": ["burst"], "about": True, "loops": ["gevent"]}


def push_update(until):
    while time.perf_counter() < until:  # <- culprit
        pass  # <- culprit


def client():
    for _ in range(25):
        push_update(time.perf_counter() + 0.005)
        gevent.sleep(0)


async def handler():
    clients = [gevent.spawn(client) for _ in range(4)]
    begin()
    gevent.joinall(clients)
    end(time.monotonic_ns())


if __name__ == "__main__":
    run(handler)
