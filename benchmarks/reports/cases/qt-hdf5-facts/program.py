"""A viewer of HDF5 files: a thread reads the whole scan, while the window shows what else is in the file."""

from __future__ import annotations

import os
import pathlib
import sys
import tempfile
import threading
import time

import h5py
import numpy

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import Qt, QTimer, Signal  # noqa: E402
from PySide6.QtWidgets import QApplication, QLabel, QVBoxLayout, QWidget  # noqa: E402


def make_file(path: pathlib.Path) -> None:
    frame = (numpy.arange(1_000_000) % 251).astype("uint16").reshape(1000, 1000)
    with h5py.File(path, "w") as file:
        scan = file.create_dataset("scan", (90, 1000, 1000), "uint16", chunks=(1, 1000, 1000), compression=1)
        for number in range(90):
            scan[number] = frame
        scan.attrs["sample"] = "quartz"


def mean_of_frames(scan: h5py.Dataset) -> list[float]:
    return [float(frame.mean()) for frame in scan[:]]


class Viewer(QWidget):
    means_found = Signal(list)

    def __init__(self, path: pathlib.Path) -> None:
        super().__init__()
        self.file = h5py.File(path, "r")
        self.facts, self.means = QLabel(), QLabel("reading...")
        layout = QVBoxLayout(self)
        layout.addWidget(self.facts)
        layout.addWidget(self.means)
        self.means_found.connect(self.show_means)
        self.clock = QTimer(self, interval=250)
        self.clock.timeout.connect(self.show_facts)
        self.clock.start()

    def start_reading(self) -> None:
        threading.Thread(target=self.read).start()

    def read(self) -> None:
        self.means_found.emit(mean_of_frames(self.file["scan"]))

    def show_facts(self) -> None:
        scan = self.file["scan"]
        self.facts.setText(f"{time.strftime('%X')}: {scan.attrs['sample']}, {scan.shape}")

    def show_means(self, means: list[float]) -> None:
        self.means.setText(f"{len(means)} frames, {means[0]:.1f} on average")
        QTimer.singleShot(500, QApplication.quit)


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
    app = QApplication(sys.argv)
    with tempfile.TemporaryDirectory() as folder:
        make_file(pathlib.Path(folder, "scan.h5"))
        window = Viewer(pathlib.Path(folder, "scan.h5"))
        window.show()
        heartbeat = Heartbeat()
        QTimer.singleShot(400, heartbeat.begin)
        QTimer.singleShot(900, window.start_reading)
        app.exec()
        print(window.facts.text(), "-", window.means.text())
        print(f"{len(heartbeat.late)} ticks, worst tick {max(heartbeat.late) * 1000:.0f} ms")
        window.file.close()
