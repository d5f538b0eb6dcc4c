"""A handler asks psutil for the load, which sleeps to measure it."""

from __future__ import annotations

import psutil
from zoo.stage import measured, run

EXPECT = {"cause": ["sleep"], "needs": ["psutil"], "advice": ["to_thread", "asyncio.sleep", "interval"]}


def load():
    return psutil.cpu_percent(interval=0.3)  # <- culprit


async def handler():
    with measured():
        load()


if __name__ == "__main__":
    run(handler)
