"""Qt by PyQt6."""

from __future__ import annotations

from zoo.loops.qt import QtHost

HOST = QtHost("PyQt6")
