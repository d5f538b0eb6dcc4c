"""Control: a loop inside a callback, as a modal dialog has one, runs for five seconds."""

from __future__ import annotations

from gi.repository import GLib
from zoo.stage import run

EXPECT = {"control": True, "loops": ["glib"]}


async def handler():
    inner = GLib.MainLoop()
    GLib.timeout_add(5000, inner.quit)
    inner.run()


if __name__ == "__main__":
    run(handler)
