"""A window of Qt shows the channels of a vibration test and pans through them."""

from __future__ import annotations

import os
import time

import numpy as np

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from matplotlib.backends.backend_qtagg import FigureCanvasQTAgg
from matplotlib.figure import Figure
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QMainWindow

CHANNELS = ["motor", "gearbox", "bearing left", "bearing right"]
SAMPLES = 200_000


class ChannelWindow(QMainWindow):
    def __init__(self) -> None:
        super().__init__()
        self.canvas = FigureCanvasQTAgg(Figure(figsize=(6, 4), dpi=80))
        self.setCentralWidget(self.canvas)
        self.axes = self.canvas.figure.add_subplot()
        seconds = np.linspace(0, 60, SAMPLES)
        for number, channel in enumerate(CHANNELS):
            self.axes.plot(seconds, np.sin(seconds / 4 + number), label=channel)
        self.axes.set_xlim(0, 20)
        self.canvas.draw()
        self.start = 0.0
        self.panning = QTimer(self)
        self.panning.timeout.connect(self.pan)

    def name_channels(self) -> None:
        self.axes.legend(fontsize="small", loc="upper right")
        self.canvas.draw_idle()
        self.panning.start(900)

    def pan(self) -> None:
        self.start += 8
        self.axes.set_xlim(self.start, self.start + 20)
        self.canvas.draw_idle()
        print(f"shows {self.start:.0f} to {self.start + 20:.0f} s")


def main() -> None:
    app = QApplication([])
    window = ChannelWindow()
    window.resize(640, 480)
    window.show()
    app.processEvents()
    late: list[float] = []
    last = time.perf_counter()

    def beat() -> None:
        nonlocal last
        now = time.perf_counter()
        late.append(now - last - 0.01)
        last = now

    beats = QTimer()
    beats.timeout.connect(beat)
    beats.start(10)
    QTimer.singleShot(500, window.name_channels)
    QTimer.singleShot(5500, app.quit)
    last = time.perf_counter()
    app.exec()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    main()
