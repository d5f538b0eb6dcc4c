"""A function bound to a mouse button computes in pure Python."""

from __future__ import annotations

import tkinter as tk

from zoo.loops import host
from zoo.stage import measured, pause, run, sized

EXPECT = {"cause": ["cpu"], "loops": ["tk"]}
ROOT = host().root


def spell(count):
    letters = 0
    for place in range(count):  # <- culprit
        letters += place % 26  # <- culprit
    return letters


ENOUGH = sized(spell, 0.3)


def on_press(event):
    with measured():
        spell(ENOUGH)


async def handler():
    field = tk.Entry(ROOT)
    field.pack()
    field.bind("<Button-1>", on_press)
    await pause(0.1)
    field.event_generate("<Button-1>", x=3, y=3, when="tail")
    await pause(0.05)


if __name__ == "__main__":
    run(handler)
