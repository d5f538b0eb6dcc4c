"""Control: a canvas whose ball moves sixty times a second."""

from __future__ import annotations

import tkinter as tk

from zoo.loops import host
from zoo.stage import pause, run

EXPECT = {"control": True, "loops": ["tk"]}


async def handler():
    canvas = tk.Canvas(host().root)
    canvas.pack()
    ball = canvas.create_oval(0, 0, 20, 20)
    for _ in range(120):
        canvas.move(ball, 1, 0)
        await pause(0.016)


if __name__ == "__main__":
    run(handler)
