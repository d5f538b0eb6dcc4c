"""A monitor of a measurement: the curve of the last values, drawn a little thicker so that one sees it from afar."""

from __future__ import annotations

import os
import sys
import time

import numpy

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pyqtgraph  # noqa: E402
from pyqtgraph.Qt.QtCore import Qt, QTimer  # noqa: E402

POINTS = 600

pyqtgraph.setConfigOptions(antialias=True)


class Monitor(pyqtgraph.PlotWidget):
    def __init__(self) -> None:
        super().__init__(title="detector")
        self.resize(1000, 600)
        self.random = numpy.random.default_rng(7)
        self.values = self.random.normal(size=POINTS)
        self.curve = self.plot(self.values, pen=pyqtgraph.mkPen("y", width=3))
        self.clock = QTimer(self, interval=1500)
        self.clock.timeout.connect(self.add_values)
        self.clock.start()

    def add_values(self) -> None:
        self.values = numpy.roll(self.values, -100)
        self.values[-100:] = self.random.normal(size=100)
        self.curve.setData(self.values)


class Heartbeat(QTimer):
    def __init__(self) -> None:
        super().__init__(interval=10, timerType=Qt.TimerType.PreciseTimer)
        self.timeout.connect(self.beat)
        self.late: list[float] = []
        self.last = 0.0

    def begin(self) -> None:
        self.last = time.perf_counter()
        self.start()

    def beat(self) -> None:
        now = time.perf_counter()
        self.late.append(now - self.last - 0.01)
        self.last = now


if __name__ == "__main__":
    app = pyqtgraph.mkQApp("monitor")
    window = Monitor()
    window.show()
    heartbeat = Heartbeat()
    QTimer.singleShot(600, heartbeat.begin)
    QTimer.singleShot(6000, app.quit)
    app.exec()
    print(f"{len(heartbeat.late)} ticks, worst tick {max(heartbeat.late) * 1000:.0f} ms")
    sys.stdout.flush()
    os._exit(0)
