"""Idle, sleeping together, many short greenlets, a pool of threads that block: the hub is never held up."""

from __future__ import annotations

import time

import gevent
from gevent.subprocess import Popen
from zoo.stage import run

EXPECT = {"control": True}


def turns():
    for _ in range(2000):
        gevent.sleep(0)


def handler(child):
    async def handle():
        gevent.joinall(
            [
                gevent.spawn(gevent.sleep, 0.4),
                gevent.get_hub().threadpool.spawn(time.sleep, 0.4),
                gevent.spawn(turns),
                gevent.spawn(child.wait),
            ]
        )

    return handle


if __name__ == "__main__":
    # Begun before: a fork, and what is read from the disk for it, may take any time.
    run(handler(Popen(["sleep", "0.6"])))
