"""Control: a modal dialog is open for five seconds."""

from __future__ import annotations

from zoo.loops import host
from zoo.stage import run

EXPECT = {"control": True, "loops": ["pyside6", "pyqt6"]}
QT = host()


async def handler():
    dialog = QT.QtWidgets.QMessageBox(QT.window)
    dialog.setText("Shall it stay for longer than a hang?")
    QT.QtCore.QTimer.singleShot(5000, dialog.accept)
    dialog.exec()


if __name__ == "__main__":
    run(handler)
