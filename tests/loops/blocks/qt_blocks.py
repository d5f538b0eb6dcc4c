"""Blocks a window of Qt's. The variant is the binding."""

from __future__ import annotations

import sqlite3
import sys
import threading
import time
from importlib import import_module

from driving import LONG_S, VARIANT, drive, fail, own

QtCore = import_module(f"{VARIANT}.QtCore")
QtGui = import_module(f"{VARIANT}.QtGui")
QtWidgets = import_module(f"{VARIANT}.QtWidgets")

Signal = getattr(QtCore, "Signal", None) or QtCore.pyqtSignal
KEPT = []


def later(function, milliseconds=0):
    QtCore.QTimer.singleShot(milliseconds, function)


# ---- events -------------------------------------------------------------------------------------


@own
def click(clock):
    def slow_slot():
        with clock:
            time.sleep(LONG_S)  # culprit of click

    button = QtWidgets.QPushButton("press")
    button.clicked.connect(slow_slot)
    button.show()
    KEPT.append(button)
    drive.go_on()
    yield
    where, left, none = QtCore.QPointF(3, 3), QtCore.Qt.MouseButton.LeftButton, QtCore.Qt.KeyboardModifier(0)
    for kind in (QtCore.QEvent.Type.MouseButtonPress, QtCore.QEvent.Type.MouseButtonRelease):
        event = QtGui.QMouseEvent(kind, where, where, left, left, none)
        QtCore.QCoreApplication.postEvent(button, event)
        KEPT.append(event)
    clock.before()
    later(lambda: drive.arrived(clock), 1)
    yield
    button.close()


@own
def key(clock):
    class Field(QtWidgets.QLineEdit):
        def keyPressEvent(self, event):  # noqa: N802, ARG002 - Qt's name
            with clock:
                time.sleep(LONG_S)  # culprit of key

    field = Field()
    field.show()
    drive.go_on()
    yield
    event = QtGui.QKeyEvent(
        QtCore.QEvent.Type.KeyPress, QtCore.Qt.Key.Key_A, QtCore.Qt.KeyboardModifier(0), "a"
    )
    clock.before()
    QtCore.QCoreApplication.postEvent(field, event)
    later(lambda: drive.arrived(clock), 1)
    yield
    field.close()


@own
def paint(clock):
    class Canvas(QtWidgets.QWidget):
        slow = False

        def paintEvent(self, event):  # noqa: N802, ARG002 - Qt's name
            if self.slow:
                self.slow = False
                with clock:
                    time.sleep(LONG_S)  # culprit of paint
                drive.then(clock)

    canvas = Canvas()
    canvas.show()
    later(drive.go_on, 30)
    yield
    canvas.slow = True
    clock.before()
    canvas.update()
    yield
    canvas.close()


class Teller(QtCore.QObject):
    told = Signal()


@own
def queued_slot(clock):
    class Hearer(QtCore.QObject):
        def slow_hearer(self):
            with clock:
                time.sleep(LONG_S)  # culprit of queued_slot
            drive.then(clock)

    teller, hearer = Teller(), Hearer()
    teller.told.connect(hearer.slow_hearer, QtCore.Qt.ConnectionType.QueuedConnection)
    clock.before()
    teller.told.emit()
    yield


# ---- what Qt's own waits do ---------------------------------------------------------------------


@own
def wait_for_process(clock):
    def call():
        process = QtCore.QProcess()
        process.start("sleep", [str(LONG_S)])
        with clock:
            process.waitForFinished()  # culprit of wait_for_process
        drive.then(clock)

    clock.before()
    later(call)
    yield


@own
def lock_of_a_qthread(clock):
    class Holder(QtCore.QThread):
        def run(self):
            with lock:
                held.set()
                wanted.wait()
                time.sleep(LONG_S)

    def call():
        wanted.set()
        with clock:
            lock.acquire()  # culprit of lock_of_a_qthread
        lock.release()
        drive.then(clock)

    lock, held, wanted = threading.Lock(), threading.Event(), threading.Event()
    holder = Holder()
    holder.start()
    held.wait()
    clock.before()
    later(call)
    yield
    holder.wait()


@own
def query(clock):
    count = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT ?) SELECT sum(i % 7) FROM n"

    def call():
        with clock:
            connection.execute(count, (limit,)).fetchone()  # culprit of query
        drive.then(clock)

    connection = sqlite3.connect(":memory:")
    began = time.thread_time()
    connection.execute(count, (100_000,)).fetchone()
    limit = int(100_000 * LONG_S / (time.thread_time() - began))
    drive.go_on()
    yield
    clock.before()
    later(call)
    yield


class Inner(QtWidgets.QDialog):
    def run(self):
        self.exec()

    def end(self):
        self.accept()


if __name__ == "__main__":
    sys.excepthook = fail
    application = QtWidgets.QApplication(sys.argv[:1])
    application.setQuitOnLastWindowClosed(False)
    drive.later, drive.inner = later, Inner
    drive.main(application.exec, application.quit)
