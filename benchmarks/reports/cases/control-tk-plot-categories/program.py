"""A window of Tk plots the states of a charger, which are strings, over time."""

from __future__ import annotations

import os
import random
import subprocess
import time
import tkinter as tk

from matplotlib.backends.backend_tkagg import FigureCanvasTkAgg
from matplotlib.figure import Figure

STATES = ["idle", "charging", "full", "fault"]


class Window(tk.Frame):
    def __init__(self, root: tk.Tk) -> None:
        super().__init__(root)
        self.canvas = FigureCanvasTkAgg(Figure(figsize=(4, 3), dpi=80), self)
        self.axes = self.canvas.figure.add_subplot()
        self.canvas.get_tk_widget().pack()
        self.button = tk.Button(self, text="Read", command=self.read_states)
        self.button.pack()
        self.canvas.draw()

    def read_states(self) -> None:
        dice = random.Random(5)
        hours = [n / 100 for n in range(4000)]
        states = [STATES[dice.choice((0, 0, 0, 1, 1, 1, 1, 2, 3))] for _ in hours]
        self.axes.plot(hours, states, ",")
        self.canvas.draw_idle()
        print(f"{len(states)} points plotted")


def start_display() -> subprocess.Popen[bytes] | None:
    if os.environ.get("DISPLAY"):
        return None
    reading, writing = os.pipe()
    command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", "1024x768x24", "-nolisten", "tcp"]
    server = subprocess.Popen(command, pass_fds=[writing], stderr=subprocess.DEVNULL)
    os.close(writing)
    with os.fdopen(reading) as answer:
        os.environ["DISPLAY"] = ":" + answer.readline().strip()
    return server


def main() -> None:
    root = tk.Tk()
    window = Window(root)
    window.pack()
    root.update()
    late: list[float] = []
    last = time.perf_counter()

    def beat() -> None:
        nonlocal last
        now = time.perf_counter()
        late.append(now - last - 0.01)
        last = now
        root.after(10, beat)

    root.after(10, beat)
    root.after(1000, window.button.invoke)
    root.after(3500, root.quit)
    root.mainloop()
    root.destroy()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    server = start_display()
    try:
        main()
    finally:
        if server:
            server.terminate()
