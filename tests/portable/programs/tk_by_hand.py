"""A program that turns Tk's loop by itself."""

from __future__ import annotations

import tkinter as tk

from waiting import blocks

root = tk.Tk()
root.after(0, lambda: None)
for _ in range(5):
    root.update()


def computes():
    blocks()


computes()
root.update()
root.destroy()
