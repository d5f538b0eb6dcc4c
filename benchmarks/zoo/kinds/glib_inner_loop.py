"""A timeout's callback blocks in a loop inside a callback, which runs for longer."""

from __future__ import annotations

import time

from gi.repository import GLib
from zoo.stage import measured, run

EXPECT = {"cause": ["sleep"], "loops": ["glib"]}


def refresh():
    with measured():
        time.sleep(0.3)  # <- culprit


async def handler():
    inner = GLib.MainLoop()
    GLib.timeout_add(300, refresh)
    GLib.timeout_add(1000, inner.quit)
    inner.run()


if __name__ == "__main__":
    run(handler)
