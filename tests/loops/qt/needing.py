"""What the tests of Qt need."""

from __future__ import annotations

import functools
import subprocess
import sys

import pytest

BINDINGS = ("PySide6", "PyQt6")


@functools.cache
def _obstacle(module: str) -> str:
    """Asked of a program of its own: two bindings in one process share one Qt, which fits one of them."""
    done = subprocess.run(
        [sys.executable, "-c", f"import {module}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["it dies"])[-1]


def needs(binding: str) -> None:
    """Skips where Qt cannot be loaded: the binding or a library of the system's is missing."""
    needs_module(f"{binding}.QtWidgets")


def needs_module(module: str) -> None:
    """As `needs`, for any module of a binding's or beside it."""
    obstacle = _obstacle(module)
    if obstacle:
        pytest.skip(f"{module} cannot be imported: {obstacle}")
