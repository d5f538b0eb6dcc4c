"""A timer's callback, which the hub itself runs, blocks."""

from __future__ import annotations

import time

import gevent
from zoo.stage import measured, pause, run

EXPECT = {"cause": ["sleep"], "loops": ["gevent"]}


def rotate_log():
    time.sleep(0.3)  # <- culprit


def on_timer():
    with measured():
        rotate_log()


async def handler():
    timer = gevent.get_hub().loop.timer(0.05)
    timer.start(on_timer)
    await pause(0.1)
    timer.close()


if __name__ == "__main__":
    run(handler)
