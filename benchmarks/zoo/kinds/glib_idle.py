"""An idle function computes in pure Python."""

from __future__ import annotations

from gi.repository import GLib
from zoo.stage import measured, pause, run, sized

EXPECT = {"cause": ["cpu"], "loops": ["glib"]}


def index(count):
    words = 0
    for place in range(count):  # <- culprit
        words += place % 1000  # <- culprit
    return words


ENOUGH = sized(index, 0.3)


def when_idle():
    with measured():
        index(ENOUGH)
    return GLib.SOURCE_REMOVE


async def handler():
    GLib.idle_add(when_idle)
    await pause(0.05)


if __name__ == "__main__":
    run(handler)
