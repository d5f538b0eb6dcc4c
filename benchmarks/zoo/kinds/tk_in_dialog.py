"""A timer's callback blocks while a modal dialog waits, which stays open for longer."""

from __future__ import annotations

import time
import tkinter as tk

from zoo.loops import host
from zoo.stage import measured, run

EXPECT = {"cause": ["sleep"], "loops": ["tk"]}
ROOT = host().root


def refresh():
    with measured():
        time.sleep(0.3)  # <- culprit


async def handler():
    dialog = tk.Toplevel(ROOT)
    ROOT.after(300, refresh)
    ROOT.after(1000, dialog.destroy)
    ROOT.wait_window(dialog)


if __name__ == "__main__":
    run(handler)
