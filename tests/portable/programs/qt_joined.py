"""Installs loopcanary in the middle of a window's life. qt_joined.py BINDING STORE"""

from __future__ import annotations

import sys
from importlib import import_module

import loopcanary

QtCore = import_module(f"{sys.argv[1]}.QtCore")
application = QtCore.QCoreApplication(sys.argv[:1])


def install():
    loopcanary.install(store=sys.argv[2], engine="portable", console=False)
    QtCore.QTimer.singleShot(100, block)


def block():
    from waiting import blocks

    blocks()
    application.quit()


QtCore.QTimer.singleShot(0, install)
sys.exit(application.exec())
