"""Idle work, by after_idle, blocks: a file made durable again and again."""

from __future__ import annotations

import os
import tempfile
import time

from zoo.loops import host
from zoo.stage import measured, pause, run

EXPECT = {"cause": ["disk-io"], "loops": ["tk"]}
ROOT = host().root


def save_durably(file, until):
    while time.monotonic() < until:
        os.pwrite(file, b"entry", 0)
        os.fsync(file)  # <- culprit


def when_idle():
    with measured():
        save_durably(FILE.fileno(), time.monotonic() + 0.3)


async def handler():
    ROOT.after_idle(when_idle)
    await pause(0.05)


if __name__ == "__main__":
    with tempfile.TemporaryFile(dir=os.environ.get("ZOO_DISK")) as FILE:
        run(handler)
