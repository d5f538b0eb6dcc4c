"""A handler runs a command by os.system."""

from __future__ import annotations

import os

from zoo.stage import measured, run

EXPECT = {"cause": ["subprocess"]}


def rotate_logs():
    os.system("sleep 0.3")  # <- culprit


async def handler():
    with measured():
        rotate_logs()


if __name__ == "__main__":
    run(handler)
