"""A window plots the log of a battery from a CSV file."""

from __future__ import annotations

import csv
import math
import os
import sys
import tempfile
import time

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QApplication, QMainWindow, QToolBar

from matplotlib.backends.backend_qtagg import FigureCanvasQTAgg
from matplotlib.figure import Figure


class Window(QMainWindow):
    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path
        self.canvas = FigureCanvasQTAgg(Figure(figsize=(4, 3), dpi=80))
        self.axes = self.canvas.figure.add_subplot()
        self.setCentralWidget(self.canvas)
        bar = QToolBar()
        self.addToolBar(bar)
        self.open_action = bar.addAction("Open", self.open_log)

    def open_log(self) -> None:
        hours, volts = [], []
        with open(self.path, newline="") as file:
            for row in csv.DictReader(file):
                hours.append(float(row["hour"]))
                volts.append(float(row["volt"]))
        self.axes.plot(hours, volts, linewidth=1)
        self.canvas.draw_idle()
        print(f"{len(hours)} points plotted")


class Heartbeat(QTimer):
    def __init__(self) -> None:
        super().__init__(interval=10, timerType=Qt.TimerType.PreciseTimer)
        self.worst, self.last = 0.0, time.perf_counter()
        self.timeout.connect(self.beat)

    def beat(self) -> None:
        now = time.perf_counter()
        self.worst = max(self.worst, now - self.last - 0.01)
        self.last = now


def write_log(path: str) -> None:
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["hour", "volt"])
        for n in range(280):
            writer.writerow([f"{n / 20:.2f}", f"{12.4 + math.sin(n / 40) + n / 9000:.4f}"])


def main(folder: str) -> None:
    path = os.path.join(folder, "battery.csv")
    write_log(path)
    app = QApplication(sys.argv)
    window = Window(path)
    window.show()
    app.processEvents()
    window.canvas.draw()
    heartbeat = Heartbeat()
    QTimer.singleShot(0, heartbeat.start)
    QTimer.singleShot(1000, window.open_action.trigger)
    QTimer.singleShot(4500, app.quit)
    app.exec()
    heartbeat.stop()
    print(f"worst tick {heartbeat.worst * 1000:.0f} ms")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(folder)
