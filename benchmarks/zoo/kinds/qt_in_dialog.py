"""A timer's slot blocks inside the loop of a modal dialog, which stays open for longer."""

from __future__ import annotations

import time

from zoo.loops import host
from zoo.stage import measured, pause, run

EXPECT = {"cause": ["sleep"], "loops": ["pyside6", "pyqt6"]}
QT = host()


def refresh():
    with measured():
        time.sleep(0.3)  # <- culprit


async def handler():
    dialog = QT.QtWidgets.QDialog(QT.window)
    QT.QtCore.QTimer.singleShot(300, refresh)
    QT.QtCore.QTimer.singleShot(1000, dialog.accept)
    dialog.exec()
    await pause(0)


if __name__ == "__main__":
    run(handler)
