"""A window moves an animation while a thread of the pool decodes large JPEG pictures with Pillow."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PIL import Image
from PySide6.QtCore import QObject, QRunnable, Qt, QThreadPool, QTimer, Signal
from PySide6.QtGui import QImage, QPixmap
from PySide6.QtWidgets import QApplication, QLabel, QProgressBar, QVBoxLayout, QWidget


class Signals(QObject):
    loaded = Signal(QImage, float)


class Load(QRunnable):
    def __init__(self, paths: list[str]) -> None:
        super().__init__()
        self.paths = paths
        self.signals = Signals()

    def run(self) -> None:
        for path in self.paths:
            began = time.perf_counter()
            with Image.open(path) as picture:
                picture.load()
                small = picture.reduce(8)
            took = time.perf_counter() - began
            image = QImage(small.tobytes(), small.width, small.height, small.width * 3, QImage.Format.Format_RGB888)
            self.signals.loaded.emit(image.copy(), took)


class Window(QWidget):
    def __init__(self, paths: list[str]) -> None:
        super().__init__()
        self.picture = QLabel("loading")
        self.bar = QProgressBar(minimum=0, maximum=100, textVisible=False)
        layout = QVBoxLayout(self)
        layout.addWidget(self.picture)
        layout.addWidget(self.bar)
        self.load = Load(paths)
        self.load.setAutoDelete(False)
        self.load.signals.loaded.connect(self.show_picture)
        self.animation = QTimer(self, interval=33)
        self.animation.timeout.connect(lambda: self.bar.setValue((self.bar.value() + 3) % 100))
        self.animation.start()

    def show_picture(self, image: QImage, took: float) -> None:
        self.picture.setPixmap(QPixmap.fromImage(image))
        print(f"decoded in {took:.2f} s")


class Heartbeat(QTimer):
    def __init__(self) -> None:
        super().__init__(interval=10, timerType=Qt.TimerType.PreciseTimer)
        self.worst, self.last = 0.0, time.perf_counter()
        self.timeout.connect(self.beat)

    def beat(self) -> None:
        now = time.perf_counter()
        self.worst = max(self.worst, now - self.last - 0.01)
        self.last = now


def paint_picture(path: str) -> None:
    noise = Image.effect_noise((1600, 1200), 40)
    picture = Image.merge("RGB", (noise, noise.transpose(Image.Transpose.ROTATE_180), noise))
    large = Image.new("RGB", (3200, 2400))
    for x in range(0, 3200, 1600):
        for y in range(0, 2400, 1200):
            large.paste(picture, (x, y))
    large.save(path, quality=90)


def main(folder: str) -> None:
    paths = [os.path.join(folder, f"picture{n}.jpg") for n in range(10)]
    paint_picture(paths[0])
    for path in paths[1:]:
        shutil.copy(paths[0], path)
    app = QApplication(sys.argv)
    window = Window(paths)
    window.show()
    app.processEvents()
    heartbeat = Heartbeat()
    QTimer.singleShot(0, heartbeat.start)
    QTimer.singleShot(1000, lambda: QThreadPool.globalInstance().start(window.load))
    QTimer.singleShot(4500, app.quit)
    app.exec()
    heartbeat.stop()
    QThreadPool.globalInstance().waitForDone()
    print(f"worst tick {heartbeat.worst * 1000:.0f} ms")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(folder)
