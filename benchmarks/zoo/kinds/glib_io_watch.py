"""A function that watches a pipe blocks."""

from __future__ import annotations

import os
import time

from gi.repository import GLib
from zoo.stage import measured, pause, run

EXPECT = {"cause": ["sleep"], "loops": ["glib"]}


def on_readable(descriptor, condition):
    with measured():
        os.read(descriptor, 1)
        time.sleep(0.3)  # <- culprit
    return GLib.SOURCE_REMOVE


async def handler():
    reading, writing = os.pipe()
    GLib.io_add_watch(reading, GLib.PRIORITY_DEFAULT, GLib.IOCondition.IN, on_readable)
    await pause(0.05)
    os.write(writing, b"x")
    await pause(0.05)


if __name__ == "__main__":
    run(handler)
