"""A window renders the oscilloscope view of a sound, with a worker that lives in a QThread."""

from __future__ import annotations

import math
import os
import sys
import time

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QObject, Qt, QThread, QTimer, Signal, Slot
from PySide6.QtWidgets import QApplication, QProgressBar, QPushButton, QVBoxLayout, QWidget

FRAMES, WINDOW, SEARCH = 300, 400, 100
SAMPLES = [math.sin(n / 17) + 0.5 * math.sin(n / 5.3) for n in range(FRAMES * 100 + WINDOW + SEARCH)]


class Renderer(QObject):
    progress = Signal(int)
    finished = Signal(int)

    def trigger(self, frame: int, last: list[float]) -> int:
        """Finds where this frame looks most like the last one."""
        start = frame * 100
        scores = []
        for offset in range(SEARCH):
            here = SAMPLES[start + offset : start + offset + WINDOW]
            scores.append(sum(a * b for a, b in zip(here, last)))
        return start + scores.index(max(scores))

    @Slot()
    def render(self) -> None:
        last = SAMPLES[:WINDOW]
        for frame in range(FRAMES):
            start = self.trigger(frame, last)
            last = SAMPLES[start : start + WINDOW]
            if frame % 30 == 0:
                self.progress.emit(frame)
        self.finished.emit(FRAMES)


class Window(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self.bar = QProgressBar(maximum=FRAMES)
        self.button = QPushButton("Render")
        layout = QVBoxLayout(self)
        layout.addWidget(self.bar)
        layout.addWidget(self.button)

        self.render_thread = QThread(self)
        self.renderer = Renderer()
        self.renderer.moveToThread(self.render_thread)
        self.renderer.progress.connect(self.bar.setValue)
        self.renderer.finished.connect(self.rendered)
        self.button.clicked.connect(self.start_render)

    def start_render(self) -> None:
        self.button.setEnabled(False)
        self.render_thread.started.connect(self.renderer.render)
        self.render_thread.start()

    def rendered(self, frames: int) -> None:
        self.bar.setValue(frames)
        self.button.setEnabled(True)
        print(f"{frames} frames rendered")


class Heartbeat(QTimer):
    def __init__(self) -> None:
        super().__init__(interval=10, timerType=Qt.TimerType.PreciseTimer)
        self.worst, self.last = 0.0, time.perf_counter()
        self.timeout.connect(self.beat)

    def beat(self) -> None:
        now = time.perf_counter()
        self.worst = max(self.worst, now - self.last - 0.01)
        self.last = now


def main() -> None:
    app = QApplication(sys.argv)
    window = Window()
    window.show()
    app.processEvents()
    heartbeat = Heartbeat()
    heartbeat.start()
    QTimer.singleShot(1000, window.button.click)
    QTimer.singleShot(5000, app.quit)
    app.exec()
    heartbeat.stop()
    window.render_thread.quit()
    window.render_thread.wait()
    print(f"worst tick {heartbeat.worst * 1000:.0f} ms")


if __name__ == "__main__":
    main()
