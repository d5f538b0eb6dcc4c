"""One of many greenlets computes and never switches; the others wait."""

from __future__ import annotations

import gevent
from zoo.stage import measured, run, sized

EXPECT = {"cause": ["cpu"], "loops": ["gevent"]}


def summarize(count):
    total = 0
    for number in range(count):  # <- culprit
        total += number % 3  # <- culprit
    return total


ENOUGH = sized(summarize, 0.3)


def hog():
    gevent.sleep(0.05)
    with measured():
        summarize(ENOUGH)


def tick():
    for _ in range(20):
        gevent.sleep(0.01)


async def handler():
    gevent.joinall([gevent.spawn(hog), *[gevent.spawn(tick) for _ in range(10)]])


if __name__ == "__main__":
    run(handler)
