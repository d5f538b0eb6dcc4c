"""A window whose parts are of several classes: named_window.py STORE BINDING. Each of its handlers blocks
once, one after the other."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path

import loopcanary

loopcanary.install(store=sys.argv[1], console="off", engine="native")
core, gui, widgets = (import_module(f"{sys.argv[2]}.{name}") for name in ("QtCore", "QtGui", "QtWidgets"))

sys.path.insert(0, str(Path(__file__).parents[2] / "program" / "programs"))
from blocking import block, slept  # noqa: E402


def once(parent, function):
    timer = core.QTimer(parent)
    timer.setSingleShot(True)
    timer.timeout.connect(function)
    timer.start(1)


class Canvas(widgets.QWidget):
    def timerEvent(self, event):  # noqa: N802 - Qt's name
        self.killTimer(event.timerId())
        block("timerEvent")
        once(window, by_ticker)


def by_ticker():
    block("by_ticker")
    qt = core.Qt
    left, none = getattr(qt, "MouseButton", qt).LeftButton, getattr(qt, "KeyboardModifier", qt).NoModifier
    kinds, at = getattr(core.QEvent, "Type", core.QEvent), core.QPointF(2, 2)
    for kind in (kinds.MouseButtonPress, kinds.MouseButtonRelease):
        application.postEvent(button, gui.QMouseEvent(kind, at, at, left, left, none))


def by_button():
    block("by_button")
    application.quit()


application = widgets.QApplication([])
window = widgets.QWidget()
window.setWindowTitle("Orders")
canvas, button = Canvas(window), widgets.QPushButton("Buy", window)
canvas.resize(50, 50)
button.clicked.connect(by_button)
window.resize(300, 200)
window.show()
canvas.startTimer(1)
application.exec() if hasattr(application, "exec") else application.exec_()
loopcanary.uninstall()
sys.stdout.write(json.dumps(slept))
