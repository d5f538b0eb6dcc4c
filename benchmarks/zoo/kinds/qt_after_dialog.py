"""What a callback does when its modal dialog is closed, which stood for a second, is the callback's."""

from __future__ import annotations

import hashlib

from zoo.loops import host
from zoo.stage import measured, run, sized

EXPECT = {"cause": ["native-cpu"], "loops": ["pyside6", "pyqt6"]}
QT = host()


def check_password(rounds):
    return hashlib.pbkdf2_hmac("sha256", b"correct horse", b"salt", rounds)  # <- culprit


ROUNDS = sized(check_password, 0.3)


async def handler():
    dialog = QT.QtWidgets.QDialog(QT.window)
    QT.QtCore.QTimer.singleShot(1000, dialog.accept)
    dialog.exec()
    with measured():
        check_password(ROUNDS)


if __name__ == "__main__":
    run(handler)
