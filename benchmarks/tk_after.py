"""What a window costs that runs 1,000 after callbacks a second, and one that draws, with loopcanary and
without.

The figure is CPU time of the whole process, watchdog included, in percent of a core. The callbacks come in
portions of ten, so that the loop waits a hundred times a second.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Iterator

from harness import table
from harness.children import alternate, answer_all, pair, start_watching

PORTION = 10
PERIOD_MS = 10
PORTIONS = table.sized(100, 5)
FRAME_MS = 16
FRAMES = table.sized(60, 6)
ITEMS = 20
ROUNDS = table.sized(30, 2)
PROCESSES = table.sized(3, 1)


def child(role: str) -> None:
    """Answers with the nanoseconds of CPU that one callback, or one frame, took."""
    start_watching()
    {"window": run_callbacks, "canvas": draw_frames}[role]()


def draw_frames() -> None:
    """A canvas whose items move, a frame each FRAME_MS."""
    import tkinter as tk  # watched from its import on

    root = tk.Tk()
    canvas = tk.Canvas(root, width=600, height=400)
    canvas.pack()
    items = [canvas.create_oval(20 * i, 10 * i, 20 * i + 30, 10 * i + 30, fill="red") for i in range(ITEMS)]

    def frame(left: int, due: float) -> None:
        for item in items:
            canvas.move(item, 1 if left % 2 else -1, 0)
        due += FRAME_MS / 1000
        if left > 1:
            root.after(max(0, round((due - time.monotonic()) * 1000)), frame, left - 1, due)
        else:
            root.after(FRAME_MS, root.quit)

    def answer(_question: object) -> float:
        begin = time.process_time_ns()
        frame(FRAMES, time.monotonic())
        root.mainloop()
        return (time.process_time_ns() - begin) / FRAMES

    answer_all(answer)


def run_callbacks() -> None:
    """A window in which nothing is drawn."""
    import tkinter as tk  # watched from its import on

    root = tk.Tk()

    def callback() -> None:
        pass

    def portions(left: int, due: float) -> None:
        for _ in range(PORTION):
            root.after(1, callback)
        if left > 1:
            due += PERIOD_MS / 1000
            root.after(max(0, round((due - time.monotonic()) * 1000)), portions, left - 1, due)
        else:
            root.after(PERIOD_MS, root.quit)

    def answer(_question: object) -> float:
        begin = time.process_time_ns()
        portions(PORTIONS, time.monotonic())
        root.mainloop()
        return (time.process_time_ns() - begin) / (PORTION * PORTIONS)

    answer_all(answer)


@contextlib.contextmanager
def screen() -> Iterator[None]:
    """An X server of the benchmark's own."""
    if shutil.which("Xvfb") is None:
        raise SystemExit("needs Xvfb")
    reading, writing = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(writing), "-screen", "0", "800x600x24"],
        pass_fds=[writing],
        stderr=subprocess.DEVNULL,
    )
    os.close(writing)
    with os.fdopen(reading) as told:
        os.environ["DISPLAY"] = f":{told.readline().strip()}"
    try:
        yield
    finally:
        server.terminate()
        server.wait()


def compare(role: str, name: str, rate: float, piece: str) -> None:
    """Prints two rows; `rate`: pieces a second."""
    figures: list[tuple[float, float]] = []
    for _ in range(PROCESSES):
        with pair(role) as (watched, plain):
            alternate(watched.ask, plain.ask, 2)
            figures += alternate(watched.ask, plain.ask, ROUNDS // PROCESSES)
    more_ns = statistics.median(watched - plain for watched, plain in figures)
    without_ns = statistics.median(plain for _, plain in figures)
    note = f"{without_ns * rate / 1e7:.1f} % without; {more_ns:.0f} ns more a {piece}"
    table.at_most(f"{name}, more CPU", more_ns * rate / 1e7, 1.0, unit="% of a core", note=note)
    table.told("with / without", table.Ratio.of(figures))


def measure() -> None:
    """Prints what callbacks cost, and what frames do while something is drawn."""
    with screen():
        compare("window", "1,000 after callbacks/s", PORTION * 1000 / PERIOD_MS, "callback")
        compare("canvas", "a canvas that moves, 62 frames/s", 1000 / FRAME_MS, "frame")


if __name__ == "__main__":
    table.run(measure, child)
