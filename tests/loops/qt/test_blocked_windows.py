"""Widgets that take no input or paint nothing, though the loop is healthy: by what, and by which line."""

from __future__ import annotations

import json
import os
import subprocess
import sys

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
    getattr(app, "exec_", app.exec)()
    timer.stop()
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
looks = []
look = tracer._watches[0].look

def counted(*args):
    looks.append(1)
    return look(*args)

tracer._watches[0].look = counted

def states():
    off.setUpdatesEnabled(False)  # it is not shown
    label.blockSignals(True)  # it takes no input
    gray.blockSignals(True)  # it is disabled
    picker.grabMouse()  # a window that is seen
    picker.grabKeyboard()
    back.setUpdatesEnabled(False)
    back.setUpdatesEnabled(True)
    app.setOverrideCursor(Qt.CursorShape.CrossCursor)  # a mode
    app.setOverrideCursor(Qt.CursorShape.WaitCursor)
    app.restoreOverrideCursor()

def pump():
    pumped.setUpdatesEnabled(False)
    while len(looks) < 14:  # it goes on, and will switch it on again
        app.processEvents()
    pumped.setUpdatesEnabled(True)
    app.quit()

for each in (states, pump):
    QtCore.QTimer.singleShot(0, each)
app.exec()
say()
"""


@pytest.mark.parametrize("binding", BINDINGS)
def test_what_is_left_on_is_reported_with_its_line(binding, run_window):
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
def test_what_is_left_on_after_a_restart_is_seen_once(binding, run_window):
    needs(binding)
    restart = "tracer.stop()\ntracer.start()\n"
    found = run_window(binding, HEAD + WINDOW.format(binding=binding) + restart + LEFT_ON)
    assert (len(found["told"]), found["times"], found["errors"]) == (5, 2, [])


@pytest.mark.parametrize("binding", BINDINGS)
def test_what_may_be_meant_is_not_reported(binding, run_window):
    needs(binding)
    found = run_window(binding, HEAD + WINDOW.format(binding=binding) + MEANT)
    assert found == {"told": [], "errors": []}


BEHIND = """
view = make(QtWidgets.QLabel, "view")
window.show()
dialog = QtWidgets.QDialog(window)

def drag():
    view.grabMouse()

QtCore.QTimer.singleShot(0, drag)
dialog.setModal(True)
dialog.show()
app.setOverrideCursor(Qt.CursorShape.WaitCursor)
until(lambda: desk.issues)  # the cursor would be told later
app.restoreOverrideCursor()
say()
"""
UNNOTICED = """
from {binding} import QtCore, QtGui, QtWidgets
owners = {{
    "setUpdatesEnabled": QtWidgets.QWidget,
    "grabMouse": QtWidgets.QWidget,
    "blockSignals": QtCore.QObject,
    "setOverrideCursor": QtGui.QGuiApplication,
    "exec": QtWidgets.QApplication,
}}
before = {{name: vars(owner)[name] for name, owner in owners.items()}}

def answers():
    widget = QtWidgets.QCheckBox("x")
    asked = [widget.blockSignals(True), widget.blockSignals(False), widget.setUpdatesEnabled(False)]
    widget.toggled.connect(widget.setUpdatesEnabled)
    widget.setChecked(True)
    asked.append(widget.updatesEnabled())
    app.setOverrideCursor(QtCore.Qt.CursorShape.WaitCursor)
    QtWidgets.QApplication.setOverrideCursor(QtCore.Qt.CursorShape.CrossCursor)
    for _ in range(2):
        QtGui.QGuiApplication.restoreOverrideCursor()
    asked.append(app.overrideCursor())
    QtCore.QTimer.singleShot(0, lambda: app.exit(7))
    asked.append(app.exec())
    for wrong in ((), (1, 2)):
        try:
            widget.setUpdatesEnabled(*wrong)
        except TypeError as error:
            asked.append(str(error) if "{binding}".startswith("PySide") else "wrong")
    asked.append(widget.setUpdatesEnabled.__name__)
    return asked

app = QtWidgets.QApplication([])
plain = answers()
tracer.start()
put = all(vars(owner)[name] is not before[name] for name, owner in owners.items())
watched = answers()
tracer.stop()
restored = all(vars(owner)[name] is before[name] for name, owner in owners.items())
say(same=plain == watched, put=put, restored=restored)
"""
LEFT_BY_A_PROGRAM = """
from {binding} import QtCore, QtWidgets

app = QtWidgets.QApplication([])
table = QtWidgets.QTableWidget()
table.setObjectName("orders")
table.show()

def load():
    table.setUpdatesEnabled(False)

QtCore.QTimer.singleShot(0, load)
app.exec()
"""


@pytest.mark.parametrize("binding", BINDINGS)
def test_a_grab_beside_a_modal_dialog_is_reported(binding, run_window):
    needs(binding)
    found = run_window(binding, HEAD + WINDOW.format(binding=binding) + BEHIND)
    assert found == {"told": [["mouse-grab", "QLabel view", "drag"]], "errors": []}


@pytest.mark.parametrize("binding", BINDINGS)
def test_the_program_notices_nothing(binding, run_window):
    needs(binding)
    found = run_window(binding, HEAD + UNNOTICED.format(binding=binding))
    # What is connected must stay what it is.
    assert found == {"told": [], "errors": [], "same": True, "put": True, "restored": False}


SLOTS = """
import weakref
view, button = make(QtWidgets.QLabel, "view"), make(QtWidgets.QPushButton, "save")
window.show()
slots = [
    QtWidgets.QApplication.restoreOverrideCursor, view.grabMouse, view.grabKeyboard, view.releaseMouse,
    view.releaseKeyboard,
]
for slot in slots:
    button.clicked.connect(slot)
button.toggled.connect(view.setUpdatesEnabled)
button.setCheckable(True)
app.setOverrideCursor(Qt.CursorShape.CrossCursor)
button.click()
took = [app.overrideCursor() is None, view.updatesEnabled(), QtWidgets.QWidget.mouseGrabber() is None]
tracer.stop()
for slot in slots:
    button.clicked.disconnect(slot)
button.toggled.disconnect(view.setUpdatesEnabled)
say(took=took)
"""


@pytest.mark.parametrize("binding", BINDINGS)
def test_they_are_slots_as_before(binding, run_window):
    needs(binding)
    found = run_window(binding, HEAD + WINDOW.format(binding=binding) + SLOTS)
    assert found == {"told": [], "errors": [], "took": [True, True, True]}


@pytest.mark.parametrize("engine", ["native", "portable"])
def test_run_reports_it_and_the_line(engine, tmp_path):
    binding = BINDINGS[0]
    needs(binding)
    program = tmp_path / "orders.py"
    program.write_text(LEFT_BY_A_PROGRAM.format(binding=binding))
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
    command = [sys.executable, "-m", "loopcanary"]
    with subprocess.Popen(
        [*command, "run", "--windows", "100ms", "--engine", engine, program.name],
        cwd=tmp_path,
        env=clean,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stderr is not None
        said = next(line for line in child.stderr if "blocked window" in line)
        child.kill()
    title = "QTableWidget orders is not painted: its updates are disabled"
    assert title in said

    def asked(*words: str) -> str:
        done = subprocess.run(
            [*command, *words], cwd=tmp_path, env=clean, capture_output=True, text=True, check=True
        )
        return done.stdout

    found = json.loads(asked("report", "--format", "json"))["issues"]
    (issue,) = [one for one in found if one["kind"] == "blocked-window"]
    assert (issue["title"], issue["loop"], issue["blocked_by"]) == (title, "qt", "updates-disabled")
    assert issue["culprit"]["source"] == "table.setUpdatesEnabled(False)"
    shown = asked("show", issue["id"])
    assert "orders.py:10 in load" in shown
    assert "setUpdatesEnabled(True) in a" in shown
    own, _, _ = shown.partition("stalls in that time")  # which a crowded machine may have made
    assert "unknown" not in own
    assert "loopcanary/" not in shown
