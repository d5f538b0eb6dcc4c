"""A sleep that never ends; killed in it."""

from __future__ import annotations

import time

from zoo.stage import measured, run

EXPECT = {"cause": ["sleep"], "killed": True, "loops": "all"}


def wait_for_ever():
    time.sleep(3600)  # <- culprit


async def handler():
    with measured():
        wait_for_ever()


if __name__ == "__main__":
    run(handler)
