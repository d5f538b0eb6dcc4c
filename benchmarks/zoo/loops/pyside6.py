"""Qt by PySide6."""

from __future__ import annotations

from zoo.loops.qt import QtHost

HOST = QtHost("PySide6")
