"""A window in which nothing blocks. Prints how often its animation ran, and for how long it paused."""

from __future__ import annotations

import sys
import time
import tkinter as tk
from tkinter import messagebox, simpledialog

PAUSE_MS = 1_100  # longer than a hang
PAUSES = 5


def idle():
    root.after(PAUSE_MS, modal_dialog)


def modal_dialog():
    dialog = tk.Toplevel(root)
    dialog.after(PAUSE_MS, dialog.destroy)
    root.wait_window(dialog)
    native_dialog()


def native_dialog():
    """Its loop is written in Tcl."""
    root.after(PAUSE_MS, lambda: root.tk.call("set", "::tk::Priv(button)", "ok"))
    assert messagebox.showinfo("quiet", "Shall it stay for longer than a stall, and than a hang?") == "ok"
    asking_dialog()


def asking_dialog():
    def close():
        for child in root.winfo_children():
            if isinstance(child, simpledialog.Dialog):
                child.cancel()

    root.after(PAUSE_MS, close)
    assert simpledialog.askstring("quiet", "And this one?", parent=root) is None
    variable = tk.StringVar(root)
    root.after(PAUSE_MS, variable.set, "set")
    root.wait_variable(variable)
    root.after(0, progress)


def progress():
    for step in range(300):
        bar["text"] = "#" * (step // 10)
        time.sleep(0.005)
        root.update()
    root.after(0, animate)


def animate():
    frames[0] += 1
    canvas.move(ball, 1, 0)
    if frames[0] < 60:
        root.after(16, animate)
    else:
        root.destroy()


frames = [0]
root = tk.Tk()
root.title("quiet")
canvas = tk.Canvas(root)
canvas.pack()
ball = canvas.create_oval(0, 0, 10, 10)
bar = tk.Label(root)
bar.pack()
root.after(0, idle)
root.mainloop()
# The window is gone: what the program does now is not the window's.
time.sleep(0.4)
sys.stdout.write(f"{frames[0]} {PAUSES * PAUSE_MS}")
