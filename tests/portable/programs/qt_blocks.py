"""Blocks a window of Qt's under the portable engine, in slots and around a dialog. qt_blocks.py BINDING"""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module

from waiting import blocks

QtCore = import_module(f"{sys.argv[1]}.QtCore")
QtWidgets = import_module(f"{sys.argv[1]}.QtWidgets")
application = QtWidgets.QApplication(sys.argv[:1])
application.setQuitOnLastWindowClosed(False)
steps = []
facts = {}


class App:
    def slow_slot(self):
        blocks()
        next_step()


def later(function, milliseconds=1):
    QtCore.QTimer.singleShot(milliseconds, function)


def next_step():
    if steps:
        later(steps.pop(0))


def opens():
    dialog = QtWidgets.QDialog()
    later(inside, 150)  # when the engine's timer has run in there
    later(dialog.accept, 500)
    began = time.monotonic()
    dialog.exec()
    facts["open_ms"] = (time.monotonic() - began) * 1000
    blocks()
    next_step()


def inside():
    blocks()


app = App()
steps += [app.slow_slot, opens, application.quit]
next_step()
status = QtWidgets.QApplication.exec() if "static" in sys.argv else application.exec()
time.sleep(0.15)  # after the end of the loop nobody waits for it
if "uninstalled" in sys.argv:
    import loopcanary

    loopcanary.uninstall()
    facts["is_own"] = not hasattr(QtWidgets.QApplication.exec, "__code__")
sys.stdout.write(json.dumps(facts))
sys.exit(status)
