"""A handler runs a command and waits for it."""

from __future__ import annotations

import subprocess

from zoo.stage import measured, run

EXPECT = {"cause": ["subprocess"], "loops": "all"}


def convert():
    subprocess.run(["sleep", "0.3"], check=True)  # <- culprit


async def handler():
    with measured():
        convert()


if __name__ == "__main__":
    run(handler)
