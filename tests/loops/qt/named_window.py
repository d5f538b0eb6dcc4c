"""A window whose parts have names of their own: named_window.py STORE BINDING. Each of its handlers blocks
once, one after the other."""

from __future__ import annotations

import sys
import time
from importlib import import_module

import loopcanary

loopcanary.install(store=sys.argv[1], quiet=True, engine="native")
core, gui, widgets = (import_module(f"{sys.argv[2]}.{name}") for name in ("QtCore", "QtGui", "QtWidgets"))

BLOCK_S = 0.15


def once(parent, name, function):
    timer = core.QTimer(parent)
    timer.setObjectName(name)
    timer.setSingleShot(True)
    timer.timeout.connect(function)
    timer.start(1)


class Canvas(widgets.QWidget):
    def paintEvent(self, event):  # noqa: ARG002, N802 - Qt's name
        if not painted:
            painted.append(1)
            time.sleep(BLOCK_S)
            once(window, 'Bücher "neu" \U0001f426\n', by_ticker)


def by_ticker():
    time.sleep(BLOCK_S)
    once(window, "", by_nameless)


def by_nameless():
    time.sleep(BLOCK_S)
    once(window, "qt_" + "spinbox", by_qt_s_own)


def by_qt_s_own():
    time.sleep(BLOCK_S)
    once(window, "x" * 300, by_long_name)


def by_long_name():
    time.sleep(BLOCK_S)
    qt = core.Qt
    left, none = getattr(qt, "MouseButton", qt).LeftButton, getattr(qt, "KeyboardModifier", qt).NoModifier
    kinds, at = getattr(core.QEvent, "Type", core.QEvent), core.QPointF(2, 2)
    for kind in (kinds.MouseButtonPress, kinds.MouseButtonRelease):
        application.postEvent(button, gui.QMouseEvent(kind, at, at, left, left, none))


def by_button():
    time.sleep(3 * BLOCK_S)  # input that lags
    application.quit()


painted = []
application = widgets.QApplication([])
window = widgets.QWidget()
window.setWindowTitle("Orders")
canvas, button = Canvas(window), widgets.QPushButton("Buy", window)
canvas.setObjectName("canvas")
canvas.resize(50, 50)
button.setObjectName("buy")
button.clicked.connect(by_button)
window.resize(300, 200)
window.show()
application.exec() if hasattr(application, "exec") else application.exec_()
loopcanary.uninstall()
