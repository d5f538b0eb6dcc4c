"""Control: many short greenlets, some that sleep long, a child and a thread of the pool."""

from __future__ import annotations

import time

import gevent
from gevent.subprocess import run as run_child
from zoo.stage import run

EXPECT = {"control": True, "loops": ["gevent"]}


def turns():
    for _ in range(2000):
        gevent.sleep(0)


async def handler():
    gevent.joinall(
        [
            gevent.spawn(turns),
            gevent.spawn(run_child, ["sleep", "0.5"]),
            gevent.get_hub().threadpool.spawn(time.sleep, 0.6),
            *[gevent.spawn(gevent.sleep, 0.5 + number / 500) for number in range(50)],
        ]
    )


if __name__ == "__main__":
    run(handler)
