"""A window of GTK 3: its loop, its modal dialogs and its applications."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.program.watching import Marks, Watched, admitted

pytestmark = pytest.mark.native

PROGRAM = Path(__file__).parent / "gtk_window.py"
MARKS = Marks(PROGRAM.read_text())


@pytest.fixture
def screen(interpreter: Any) -> Iterator[None]:
    """An X server of the test's own."""
    asks = "import gi; gi.require_version('Gtk', '3.0')"
    if subprocess.run([interpreter.python, "-c", asks], capture_output=True, check=False).returncode != 0:
        pytest.skip("GTK 3 is not there for PyGObject (gir1.2-gtk-3.0)")
    if shutil.which("Xvfb") is None:
        pytest.skip("Xvfb is not installed")
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
        yield
    server.terminate()
    server.wait()


@pytest.mark.usefixtures("screen")
def test_a_window_a_dialog_and_an_application(interpreter, tmp_path):
    interpreter.run(PROGRAM, tmp_path / "store")
    stalls = Watched(store=tmp_path / "store", engine="native").report()["stalls"]
    seen = {}
    for stall in stalls:
        if stall["cause"] != "host":
            assert stall["cause"] in admitted(stall, ("sleep",)), stall
            seen[stall["culprit"]["function"], stall["culprit"]["line"]] = stall["callback"]["name"]
    assert seen == {
        MARKS.find("culprit of on_clicked"): "timeout: press",
        MARKS.find("culprit of with_dialog"): "timeout: with_dialog",
        MARKS.find("culprit of slow"): "timeout: Application.slow",
    }
