"""Idle, sleeping together, many short greenlets, a pool of threads that block: the hub is never held up."""

from __future__ import annotations

import time

import gevent
from gevent.subprocess import run as run_child
from zoo.stage import run

EXPECT = {"control": True}


def turns():
    for _ in range(2000):
        gevent.sleep(0)


async def handler():
    gevent.joinall(
        [
            gevent.spawn(gevent.sleep, 0.4),
            gevent.get_hub().threadpool.spawn(time.sleep, 0.4),
            gevent.spawn(turns),
            gevent.spawn(run_child, ["sleep", "0.3"]),
        ]
    )


if __name__ == "__main__":
    run_child(["true"])  # What it loads with its first child is read from the disk, which may take any time.
    run(handler)
