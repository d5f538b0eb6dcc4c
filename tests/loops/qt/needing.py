"""What the tests of Qt need."""

from __future__ import annotations

import functools
import subprocess
import sys

import pytest

BINDINGS = ("PySide6", "PyQt6")


@functools.cache
def _obstacle(binding: str) -> str:
    """Asked of a program of its own: two bindings in one process share one Qt, which fits one of them."""
    done = subprocess.run(
        [sys.executable, "-c", f"import {binding}.QtWidgets"],
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["it dies"])[-1]


def needs(binding: str) -> None:
    """Skips where Qt cannot be loaded: the binding or a library of the system's is missing."""
    obstacle = _obstacle(binding)
    if obstacle:
        pytest.skip(f"{binding} cannot be imported: {obstacle}")
