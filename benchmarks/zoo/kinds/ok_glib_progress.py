"""Control: work in short pieces, with what is due run in between by MainContext.iteration."""

from __future__ import annotations

import time

from gi.repository import GLib
from zoo.stage import run

EXPECT = {"control": True, "loops": ["glib"]}


async def handler():
    context = GLib.MainContext.default()
    for _ in range(200):
        time.sleep(0.01)
        while context.iteration(False):
            pass


if __name__ == "__main__":
    run(handler)
