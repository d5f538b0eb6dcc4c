"""Widgets that take no input or paint nothing, though the loop is healthy: by what, and by which line."""

from __future__ import annotations

import pytest
from tests.loops.window_desk import HEAD

from .needing import BINDINGS, needs

WINDOW = """
tracer.start()
from {binding} import QtCore, QtGui, QtWidgets
Qt = QtCore.Qt
app = QtWidgets.QApplication([])
window = QtWidgets.QWidget()

def make(kind, name="", parent=window):
    widget = kind(parent)
    widget.setObjectName(name)
    return widget

def until(is_done):
    def look():
        if is_done():
            app.quit()
    timer = QtCore.QTimer(app)
    timer.timeout.connect(look)
    timer.start(5)
    app.exec()
"""
LEFT_ON = """
table, button = make(QtWidgets.QTableWidget, "orders"), make(QtWidgets.QPushButton, "save")
hidden, field = make(QtWidgets.QLabel, "hidden"), make(QtWidgets.QLineEdit, "name")
window.show()
hidden.hide()

def load():
    table.setUpdatesEnabled(False)
    table.setUpdatesEnabled(False)

def fill():
    button.blockSignals(True)

def drag():
    hidden.grabMouse()

def shortcut():
    hidden.grabKeyboard()

def export():
    QtWidgets.QApplication.setOverrideCursor(Qt.CursorShape.WaitCursor)

for leave_on in (load, fill, drag, shortcut, export):
    QtCore.QTimer.singleShot(0, leave_on)
until(lambda: is_told("override-cursor"))
say(times=next(one.times for one in desk.issues if one.blocked_by == "updates-disabled"))
"""
MEANT = """
window.show()
off, label, gray = (make(kind) for kind in (QtWidgets.QTableWidget, QtWidgets.QLabel, QtWidgets.QPushButton))
back, pumped = make(QtWidgets.QTableWidget), make(QtWidgets.QTableWidget)
for widget in (label, gray, back, pumped):
    widget.show()
gray.setEnabled(False)
picker = QtWidgets.QDialog(window)
picker.show()
sentinel = make(QtWidgets.QTableWidget, "sentinel")
sentinel.show()

def do():
    off.setUpdatesEnabled(False)  # it is not shown
    label.blockSignals(True)  # it takes no input
    gray.blockSignals(True)  # it is disabled
    picker.grabMouse()  # a window that is seen
    picker.grabKeyboard()
    back.setUpdatesEnabled(False)
    back.setUpdatesEnabled(True)
    app.setOverrideCursor(Qt.CursorShape.WaitCursor)
    app.restoreOverrideCursor()
    app.setOverrideCursor(Qt.CursorShape.CrossCursor)  # a mode
    pumped.setUpdatesEnabled(False)
    while not is_told("updates-disabled"):  # it goes on, and will switch it on again
        app.processEvents()
    pumped.setUpdatesEnabled(True)
    app.quit()

def sentinel_on():
    sentinel.setUpdatesEnabled(False)

for each in (sentinel_on, do):
    QtCore.QTimer.singleShot(0, each)
app.exec()
say()
"""


@pytest.mark.parametrize("binding", BINDINGS)
def test_what_is_left_on_is_told_with_its_line(binding, run_window):
    needs(binding)
    found = run_window(binding, HEAD + WINDOW.format(binding=binding) + LEFT_ON)
    assert found == {
        "told": [
            ["keyboard-grab", "QLabel hidden", "shortcut"],
            ["mouse-grab", "QLabel hidden", "drag"],
            ["override-cursor", "WaitCursor", "export"],
            ["signals-blocked", "QPushButton save", "fill"],
            ["updates-disabled", "QTableWidget orders", "load"],
        ],
        "errors": [],
        "times": 2,
    }


@pytest.mark.parametrize("binding", BINDINGS)
def test_what_may_be_meant_is_not_told(binding, run_window):
    needs(binding)
    found = run_window(binding, HEAD + WINDOW.format(binding=binding) + MEANT)
    assert found == {
        "told": [["updates-disabled", "QTableWidget sentinel", "sentinel_on"]],
        "errors": [],
    }
