"""Control: a progress bar; the work between two calls of update is short."""

from __future__ import annotations

import time
from tkinter import ttk

from zoo.loops import host
from zoo.stage import run

EXPECT = {"control": True, "loops": ["tk"]}
ROOT = host().root


async def handler():
    bar = ttk.Progressbar(ROOT, maximum=200)
    bar.pack()
    for step in range(200):
        bar["value"] = step
        time.sleep(0.01)
        ROOT.update()


if __name__ == "__main__":
    run(handler)
