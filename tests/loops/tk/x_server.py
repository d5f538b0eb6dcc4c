"""An X server of the tests' own."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def x_server(*more: str) -> Iterator[str]:
    """One of the tests' own, with no window manager; its DISPLAY."""
    if shutil.which("Xvfb") is None:
        pytest.skip("Xvfb is not installed")
    reading, writing = os.pipe()
    # It chooses a free display and tells it; it ends by SIGTERM.
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(writing), "-screen", "0", "800x600x24", "-nolisten", "tcp", *more],
        pass_fds=[writing],
        stderr=subprocess.DEVNULL,
    )
    os.close(writing)
    with os.fdopen(reading) as told:
        number = told.readline().strip()
    if not number:
        server.wait()
        pytest.skip("Xvfb does not start here")
    try:
        yield f":{number}"
    finally:
        server.terminate()
        server.wait()
