"""A handler waits for a threading.Event."""

from __future__ import annotations

import threading

from zoo.stage import measured, run

EXPECT = {"cause": ["lock"]}


def wait_for_leader(elected):
    elected.wait(5)  # <- culprit


async def handler():
    elected = threading.Event()
    with measured():
        threading.Timer(0.3, elected.set).start()
        wait_for_leader(elected)


if __name__ == "__main__":
    run(handler)
