"""Control: a progress bar; the work between two calls of processEvents is short."""

from __future__ import annotations

import time

from zoo.loops import host
from zoo.stage import run

EXPECT = {"control": True, "loops": ["pyside6", "pyqt6"]}
QT = host()


async def handler():
    bar = QT.QtWidgets.QProgressBar(QT.window)
    bar.setRange(0, 200)
    bar.show()
    for step in range(200):
        bar.setValue(step)
        time.sleep(0.01)
        QT.QtWidgets.QApplication.processEvents()


if __name__ == "__main__":
    run(handler)
