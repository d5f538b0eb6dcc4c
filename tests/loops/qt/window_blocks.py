"""Blocks a window of Qt's in the ways of tests/program/programs/blocks.py, and in some of its own.

window_blocks.py BLOCKS_FOLDER BINDING TRUTH_FILE FOLDER [KIND...]
"""

from __future__ import annotations

import gc
import json
import os
import sqlite3
import sys
import threading
import time
from importlib import import_module
from pathlib import Path

sys.path.insert(0, sys.argv[1])
blocks = import_module("blocks")
QtCore = import_module(f"{sys.argv[2]}.QtCore")
QtGui = import_module(f"{sys.argv[2]}.QtGui")
QtWidgets = import_module(f"{sys.argv[2]}.QtWidgets")

from clock import BlockClock  # noqa: E402 - of that folder

Signal = getattr(QtCore, "Signal", None) or QtCore.pyqtSignal
LONG_S = blocks.LONG_S
OWN = {}
KEPT = []
PREPARED = {}
"""Arguments of the shared blocks, made before any loop runs: it would wait for the GIL meanwhile."""


def own(block):
    OWN[block.__name__] = block
    return block


def later(function, milliseconds=0):
    QtCore.QTimer.singleShot(milliseconds, function)


class Driver:
    """Runs a generator: where it yields, it waits until `go_on` is called."""

    def __init__(self, generator):
        self._generator = generator

    def go_on(self):
        later(self._step, 1)

    def _step(self):
        next(self._generator, None)


def by_a_timer(block, clock, go_on):
    def call():
        block(clock, *prepared)
        later(arrive)

    def arrive():
        clock.after()
        go_on()

    prepared = PREPARED[block]
    go_on()
    yield
    clock.before()
    later(call)
    yield


def then(clock, go_on):
    """The first thing after the block."""
    clock.after()
    go_on()


# ---- events -------------------------------------------------------------------------------------


@own
def click(clock, go_on):
    def slow_slot():
        with clock:
            time.sleep(LONG_S)  # culprit of slow_slot

    button = QtWidgets.QPushButton("press")
    button.clicked.connect(slow_slot)
    button.show()
    KEPT.append(button)
    go_on()
    yield
    where, left, none = QtCore.QPointF(3, 3), QtCore.Qt.MouseButton.LeftButton, QtCore.Qt.KeyboardModifier(0)
    for kind in (QtCore.QEvent.Type.MouseButtonPress, QtCore.QEvent.Type.MouseButtonRelease):
        event = QtGui.QMouseEvent(kind, where, where, left, left, none)
        QtCore.QCoreApplication.postEvent(button, event)
        KEPT.append(event)
    clock.before()
    later(lambda: then(clock, go_on), 1)
    yield
    button.close()


@own
def key(clock, go_on):
    class Field(QtWidgets.QLineEdit):
        def keyPressEvent(self, event):  # noqa: N802, ARG002 - Qt's name
            with clock:
                time.sleep(LONG_S)  # culprit of keyPressEvent

    field = Field()
    field.show()
    go_on()
    yield
    event = QtGui.QKeyEvent(
        QtCore.QEvent.Type.KeyPress, QtCore.Qt.Key.Key_A, QtCore.Qt.KeyboardModifier(0), "a"
    )
    clock.before()
    QtCore.QCoreApplication.postEvent(field, event)
    later(lambda: then(clock, go_on), 1)
    yield
    field.close()


@own
def paint(clock, go_on):
    class Canvas(QtWidgets.QWidget):
        slow = False

        def paintEvent(self, event):  # noqa: N802, ARG002 - Qt's name
            if self.slow:
                self.slow = False
                with clock:
                    time.sleep(LONG_S)  # culprit of paintEvent
                later(lambda: then(clock, go_on))

    canvas = Canvas()
    canvas.show()
    later(go_on, 30)
    yield
    canvas.slow = True
    clock.before()
    canvas.update()
    yield
    canvas.close()


class Teller(QtCore.QObject):
    told = Signal()


@own
def queued_slot(clock, go_on):
    class Hearer(QtCore.QObject):
        def slow_hearer(self):
            with clock:
                time.sleep(LONG_S)  # culprit of slow_hearer
            later(lambda: then(clock, go_on))

    teller, hearer = Teller(), Hearer()
    teller.told.connect(hearer.slow_hearer, QtCore.Qt.ConnectionType.QueuedConnection)
    clock.before()
    teller.told.emit()
    yield


# ---- what Qt's own waits do ---------------------------------------------------------------------


@own
def wait_for_process(clock, go_on):
    def call():
        process = QtCore.QProcess()
        process.start("sleep", [str(LONG_S)])
        with clock:
            process.waitForFinished()  # culprit of wait_for_process
        later(lambda: then(clock, go_on))

    clock.before()
    later(call)
    yield


@own
def lock_of_a_qthread(clock, go_on):
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
        later(lambda: then(clock, go_on))

    lock, held, wanted = threading.Lock(), threading.Event(), threading.Event()
    holder = Holder()
    holder.start()
    held.wait()
    clock.before()
    later(call)
    yield
    holder.wait()


@own
def query(clock, go_on):
    count = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT ?) SELECT sum(i % 7) FROM n"

    def call():
        with clock:
            connection.execute(count, (limit,)).fetchone()  # culprit of query
        later(lambda: then(clock, go_on))

    connection = sqlite3.connect(":memory:")
    began = time.thread_time()
    connection.execute(count, (100_000,)).fetchone()
    limit = int(100_000 * LONG_S / (time.thread_time() - began))
    go_on()
    yield
    clock.before()
    later(call)
    yield


# ---- loops inside callbacks ---------------------------------------------------------------------


@own
def slot_in_a_dialog(clock, go_on):
    """A modal dialog's own loop runs the block; the dialog stays for longer than it."""

    def inside():
        with clock:
            time.sleep(LONG_S)  # culprit of slot_in_a_dialog
        later(arrive)

    def arrive():
        clock.after()
        later(dialog.accept, 200)

    def opens():
        later(begin, 200)
        dialog.exec()
        go_on()

    def begin():
        clock.before()
        later(inside)

    dialog = QtWidgets.QDialog()
    later(opens)
    yield


@own
def after_a_dialog(clock, go_on):
    """What a slot does when its dialog is closed is the slot's."""

    def opens():
        later(closes, 200)
        dialog.exec()
        with clock:
            time.sleep(LONG_S)  # culprit of after_a_dialog
        later(lambda: then(clock, go_on))

    def closes():
        clock.before()
        dialog.accept()

    dialog = QtWidgets.QDialog()
    later(opens)
    yield


@own
def burst(clock, go_on):
    def short():
        began = time.perf_counter_ns()
        while time.perf_counter_ns() - began < 500_000:
            pass
        longest[0] = max(longest[0], time.perf_counter_ns() - began)

    longest = [0]
    clock.before()
    for _ in range(600):
        later(short)
    later(lambda: then(clock, go_on))
    yield
    clock.facts["longest_callback_ns"] = longest[0]


# ---- all of them --------------------------------------------------------------------------------


def all_kinds(names, truth):
    for name in names:
        clock = BlockClock(name)
        drive = OWN.get(name)
        if drive is not None:
            yield from drive(clock, driver.go_on)
        else:
            yield from by_a_timer(blocks.KINDS[name][1], clock, driver.go_on)
        truth.append(clock.facts)
        driver.go_on()
        yield
    application.quit()


def fail(*error):
    sys.__excepthook__(*error)
    sys.stderr.flush()
    os._exit(1)


if __name__ == "__main__":
    sys.excepthook = fail
    gc.disable()
    sys.path.append(sys.argv[4])
    truth_file, blocks.FOLDER = Path(sys.argv[3]), Path(sys.argv[4])
    for name in sys.argv[5:]:
        if name not in OWN:
            block = blocks.KINDS[name][1]
            make = getattr(block, "prepare", None)
            PREPARED[block] = () if make is None else (make(),)
    truth = []
    application = QtWidgets.QApplication(sys.argv[:1])
    application.setQuitOnLastWindowClosed(False)
    driver = Driver(all_kinds(sys.argv[5:], truth))
    driver.go_on()
    application.exec()
    truth_file.write_text(json.dumps(truth))
