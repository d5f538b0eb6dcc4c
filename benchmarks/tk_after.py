"""What a window costs that runs 10,000 after callbacks a second, with loopcanary and without.

The figure is CPU time of the whole process, watchdog included, in percent of a core. The callbacks come in
portions of a hundred, so that the loop waits a hundred times a second.
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

PORTION = 100
PERIOD_MS = 10
PORTIONS = 50
ROUNDS = 30
PROCESSES = 3


def child(_role: str) -> None:
    """Answers with the nanoseconds of CPU that one callback took."""
    start_watching()
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


def measure() -> None:
    """Prints one row."""
    figures: list[tuple[float, float]] = []
    with screen():
        for _ in range(PROCESSES):
            with pair("window") as (watched, plain):
                alternate(watched.ask, plain.ask, 2)
                figures += alternate(watched.ask, plain.ask, ROUNDS // PROCESSES)
    more_ns = statistics.median(watched - plain for watched, plain in figures)
    without_ns = statistics.median(plain for _, plain in figures)
    rate = PORTION * 1000 / PERIOD_MS
    note = f"{without_ns * rate / 1e7:.1f} % without; {more_ns:.0f} ns more a callback"
    table.at_most(
        "10,000 after callbacks/s, more CPU", more_ns * rate / 1e7, 1.0, unit="% of a core", note=note
    )
    table.told("with / without", table.Ratio.of(figures))


if __name__ == "__main__":
    table.run(measure, child)
