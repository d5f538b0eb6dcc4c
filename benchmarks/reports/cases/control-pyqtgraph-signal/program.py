"""A window of Qt shows two channels, which a thread sends as signals, with pyqtgraph."""

from __future__ import annotations

import os
import time

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QThread, QTimer, Signal
from PySide6.QtWidgets import QApplication, QMainWindow, QVBoxLayout, QWidget

POINTS = 40_000


class Reader(QThread):
    block = Signal(object)

    def run(self) -> None:
        dice = np.random.default_rng(3)
        while not self.isInterruptionRequested():
            self.block.emit(dice.normal(size=(2, 2000)))
            self.msleep(250)


class ChannelWindow(QMainWindow):
    def __init__(self) -> None:
        super().__init__()
        self.setCentralWidget(QWidget())
        rows = QVBoxLayout(self.centralWidget())
        self.values = np.zeros((2, POINTS))
        self.curves = []
        self.views = []
        for color in ("y", "c"):
            view = pg.PlotWidget()
            curve = view.plot(pen=color)
            curve.setDownsampling(auto=True, method="peak")
            curve.setClipToView(True)
            rows.addWidget(view)
            self.views.append(view)
            self.curves.append(curve)
        self.blocks = 0

    def take(self, block: np.ndarray) -> None:
        self.values = np.concatenate((self.values[:, block.shape[1] :], block), axis=1)
        for curve, values in zip(self.curves, self.values):
            curve.setData(values)
        self.blocks += 1

    def pan(self) -> None:
        for view in self.views:
            view.getViewBox().translateBy(x=200)


def main() -> None:
    app = QApplication([])
    window = ChannelWindow()
    window.resize(800, 600)
    window.show()
    for curve in window.curves:
        curve.setData(np.zeros(POINTS))
    app.processEvents()
    window.grab()
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
    pans = QTimer()
    pans.timeout.connect(window.pan)
    pans.start(100)
    reader = Reader()
    reader.block.connect(window.take)
    QTimer.singleShot(300, reader.start)
    QTimer.singleShot(5000, app.quit)
    last = time.perf_counter()
    app.exec()
    reader.requestInterruption()
    reader.wait()
    print(f"{window.blocks} blocks shown")
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    main()
