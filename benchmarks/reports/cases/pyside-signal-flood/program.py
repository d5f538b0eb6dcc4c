"""Workers send a signal for each item to a log that is off, and the window has no time for itself."""

from __future__ import annotations

import os
import pathlib
import time

from PySide6.QtCore import QObject, QRunnable, QThreadPool, QTimer, Signal, Slot
from PySide6.QtWidgets import QApplication, QLabel

LOGGING = False
PICTURES = [f"/pictures/holiday/{number}.png" for number in range(50_000)]


class Signals(QObject):
    started = Signal(int, str)
    finished = Signal()


class Worker(QRunnable):
    def __init__(self, names: list[str]) -> None:
        super().__init__()
        self.names = names
        self.signals = Signals()

    def run(self) -> None:
        for number, name in enumerate(self.names):
            self.signals.started.emit(number, name)
        self.signals.finished.emit()


class Window(QLabel):
    def __init__(self) -> None:
        super().__init__("converting")
        self.lines: list[str] = []
        self.late: list[float] = []
        self.seen = time.perf_counter()
        self.beat = QTimer(self, interval=10)
        self.beat.timeout.connect(self.tick)
        self.beat.start()

    @Slot()
    def tick(self) -> None:
        now = time.perf_counter()
        self.late.append(now - self.seen - 0.01)
        self.seen = now

    @Slot(int, str)
    def worker_started(self, number: int, name: str) -> None:
        line = f"{time.strftime('%H:%M:%S')} {number:06} {pathlib.PurePath(name).stem} is being converted"
        if LOGGING:
            self.lines.append(line)

    @Slot()
    def worker_finished(self) -> None:
        self.setText("converted")

    def convert(self) -> None:
        self.worker = Worker(PICTURES)
        self.worker.signals.started.connect(self.worker_started)
        self.worker.signals.finished.connect(self.worker_finished)
        QThreadPool.globalInstance().start(self.worker)


if __name__ == "__main__":
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    application = QApplication([])
    window = Window()
    window.show()
    QTimer.singleShot(1000, window.convert)
    QTimer.singleShot(7000, application.quit)
    application.exec()
    print(f"{window.text()}, worst tick {max(window.late) * 1000:.0f} ms")
