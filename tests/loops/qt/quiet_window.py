"""A window in which nothing blocks: quiet_window.py BINDING. Prints how many frames it drew, and for how many
milliseconds it paused."""

from __future__ import annotations

import sys
import time
from importlib import import_module

QtCore = import_module(f"{sys.argv[1]}.QtCore")
QtWidgets = import_module(f"{sys.argv[1]}.QtWidgets")

PAUSE_MS = 1_100  # longer than a hang
PAUSES = 4


class Canvas(QtWidgets.QWidget):
    frames = 0

    def paintEvent(self, event):  # noqa: ARG002, N802 - Qt's name
        self.frames += 1


def idle():
    QtCore.QTimer.singleShot(PAUSE_MS, modal_dialog)


def modal_dialog():
    dialog = QtWidgets.QMessageBox(window)
    dialog.setText("Shall it stay for longer than a stall, and than a hang?")
    QtCore.QTimer.singleShot(PAUSE_MS, dialog.accept)
    dialog.exec()
    nested_loop()


def nested_loop():
    loop = QtCore.QEventLoop()
    QtCore.QTimer.singleShot(PAUSE_MS, loop.quit)
    loop.exec()
    menu()


def menu():
    shown = QtWidgets.QMenu(window)
    shown.addAction("nothing")
    QtCore.QTimer.singleShot(PAUSE_MS, shown.close)
    shown.exec()
    QtCore.QTimer.singleShot(0, progress)


def progress():
    bar = QtWidgets.QProgressBar(window)
    bar.setRange(0, 300)
    bar.show()
    for step in range(300):
        bar.setValue(step)
        time.sleep(0.005)
        application.processEvents()
    animate()


def animate():
    def tick():
        window.update()
        if window.frames - before >= 60:
            ticking.stop()
            application.quit()

    before = window.frames
    ticking = QtCore.QTimer(window)
    ticking.timeout.connect(tick)
    ticking.start(16)


application = QtWidgets.QApplication(sys.argv[:1])
window = Canvas()
window.setWindowTitle("quiet")
window.show()
QtCore.QTimer.singleShot(0, idle)
application.exec()
sys.stdout.write(f"{window.frames} {PAUSES * PAUSE_MS}")
