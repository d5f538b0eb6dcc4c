from __future__ import annotations

import ctypes.util
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("loopcanary._native", reason="needs the C core")


@pytest.fixture
def tell(interpreter: Any) -> Any:
    """tell(source): runs a program; what it prints last, as JSON."""
    return lambda source: json.loads(interpreter.run("-c", source).splitlines()[-1])


@pytest.fixture
def gtk(request: pytest.FixtureRequest, interpreter: Any) -> Iterator[None]:
    """GTK of a version, and an X server of the test's own."""
    asks = f"import gi; gi.require_version('Gtk', '{request.param}.0')"
    if subprocess.run([interpreter.python, "-c", asks], capture_output=True, check=False).returncode != 0:
        pytest.skip(f"GTK {request.param} is not there for PyGObject (gir1.2-gtk-{request.param}.0)")
    if shutil.which("Xvfb") is None:
        pytest.skip("Xvfb is not installed")
    if ctypes.util.find_library("Xtst") is None:
        pytest.skip("nothing to click with (libXtst)")
    reading, writing = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(writing), "-screen", "0", "800x600x24", "-nolisten", "tcp"],
        pass_fds=[writing],
        stderr=subprocess.DEVNULL,
    )
    os.close(writing)
    with os.fdopen(reading) as told:
        number = told.readline().strip()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DISPLAY", f":{number}")
        patch.setenv("GDK_BACKEND", "x11")
        patch.setenv("GSK_RENDERER", "cairo")  # no graphics card is needed
        yield
    server.terminate()
    server.wait()
