"""A window of Qt's, for either binding."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from zoo.loops.steps import CallbackHost


class QtHost(CallbackHost):
    """Programs are called by timers. The binding's modules are here for kinds that are Qt's own."""

    def __init__(self, binding: str) -> None:
        self.QtCore: Any = import_module(f"{binding}.QtCore")
        self.QtGui: Any = import_module(f"{binding}.QtGui")
        self.QtWidgets: Any = import_module(f"{binding}.QtWidgets")
        self._application = self.QtWidgets.QApplication(["zoo"])
        self._application.setQuitOnLastWindowClosed(False)
        self.window = self.QtWidgets.QWidget()
        self.window.setWindowTitle("zoo")
        self.window.show()

    def later(self, seconds: float, function: Callable[[], None]) -> None:
        """See CallbackHost."""
        self.QtCore.QTimer.singleShot(round(seconds * 1e3), function)

    def loop(self) -> None:
        """See CallbackHost."""
        self._application.exec()

    def leave(self) -> None:
        """See CallbackHost."""
        self._application.quit()
