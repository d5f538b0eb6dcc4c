"""What the tests of Qt need."""

from __future__ import annotations

import importlib

import pytest

BINDINGS = ("PySide6", "PyQt6")


def needs(binding: str) -> None:
    """Skips where Qt cannot be loaded; that system libraries are missing is an ImportError, too."""
    try:
        importlib.import_module(f"{binding}.QtWidgets")
    except ImportError as error:
        pytest.skip(f"{binding} cannot be imported: {error}")
