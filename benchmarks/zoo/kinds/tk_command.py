"""A button's command blocks; the click comes as events."""

from __future__ import annotations

import time
import tkinter as tk

from zoo.loops import host
from zoo.stage import measured, pause, run

EXPECT = {"cause": ["sleep"], "loops": ["tk"]}
ROOT = host().root


def save():
    time.sleep(0.3)  # <- culprit


def on_click():
    with measured():
        save()


async def handler():
    button = tk.Button(ROOT, text="save", command=on_click)
    button.pack()
    await pause(0.1)
    for sequence in ("<Enter>", "<ButtonPress-1>", "<ButtonRelease-1>"):
        button.event_generate(sequence, x=3, y=3, when="tail")
    await pause(0.05)


if __name__ == "__main__":
    run(handler)
