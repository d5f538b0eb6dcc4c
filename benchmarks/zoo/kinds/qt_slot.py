"""A button's slot blocks; the click comes as an event."""

from __future__ import annotations

import time

from zoo.loops import host
from zoo.stage import measured, pause, run

EXPECT = {"cause": ["sleep"], "loops": ["pyside6", "pyqt6"]}
QT = host()


def save():
    time.sleep(0.3)  # <- culprit


def on_clicked():
    with measured():
        save()


def press(button):
    at, left = QT.QtCore.QPointF(3, 3), QT.QtCore.Qt.MouseButton.LeftButton
    for kind in (QT.QtCore.QEvent.Type.MouseButtonPress, QT.QtCore.QEvent.Type.MouseButtonRelease):
        event = QT.QtGui.QMouseEvent(kind, at, at, left, left, QT.QtCore.Qt.KeyboardModifier(0))
        EVENTS.append(event)
        QT.QtCore.QCoreApplication.postEvent(button, event)


async def handler():
    button = QT.QtWidgets.QPushButton("save")
    button.clicked.connect(on_clicked)
    button.show()
    await pause(0.05)
    press(button)
    await pause(0.05)
    button.close()


EVENTS = []

if __name__ == "__main__":
    run(handler)
