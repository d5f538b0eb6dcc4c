"""What was ordered, kept in a file."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

_file = None


@contextlib.contextmanager
def opened():
    """For as long as the service runs."""
    global _file
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "orders.journal").open("w+") as _file:
        yield


def append(item, count):
    """One line for each piece, each one safe on the disk."""
    for _ in range(count):
        _file.write(f"{item}\n")
        _file.flush()
        os.fsync(_file.fileno())


def entries():
    """All that was ordered."""
    _file.seek(0)
    return _file.read().splitlines()
