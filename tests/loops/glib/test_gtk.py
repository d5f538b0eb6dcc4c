"""A window of GTK 3: its loop, its modal dialogs and its applications."""

from __future__ import annotations

import ctypes.util
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.program.watching import Marks, Watched, admitted

pytestmark = pytest.mark.native

HERE = Path(__file__).parent


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


def seen(
    interpreter: Any, program: Path, store: Path, functions: Sequence[str]
) -> tuple[dict[str, tuple[str, str]], list[dict[str, Any]]]:
    """Of each block that is marked, by its function: its callback's name and its scene; and the input that
    lagged. What else is slow is GTK's own, such as a server that is asked and does not run."""
    interpreter.run(program, store)
    report = Watched(store=store, engine="native").report()
    marks = Marks(program.read_text())
    marked = {marks.find(f"culprit of {function}"): function for function in functions}
    blocks = {}
    for stall in report["stalls"]:
        culprit = stall["culprit"] or {}
        function = marked.get((culprit.get("function"), culprit.get("line")))
        if function is not None:
            assert stall["cause"] in admitted(stall, ("sleep",)), stall
            blocks[function] = stall["callback"]["name"], stall["scene"]
    return blocks, [issue for issue in report["issues"] if issue["kind"] == "input"]


def names_of(blocks: dict[str, tuple[str, str]]) -> dict[str, str]:
    return {function: name for function, (name, _) in blocks.items()}


@pytest.mark.parametrize("gtk", [3], indirect=True)
@pytest.mark.usefixtures("gtk")
def test_a_window_a_dialog_and_an_application(interpreter, tmp_path):
    functions = ("on_clicked", "with_dialog", "slow")
    blocks, lags = seen(interpreter, HERE / "gtk_window.py", tmp_path / "store", functions)
    assert names_of(blocks) == {
        "on_clicked": "clicked: on_clicked",
        "with_dialog": "timeout: with_dialog",
        "slow": "timeout: Application.slow",
    }
    assert blocks["on_clicked"][1] == "window"
    assert "clicked: on_clicked (ButtonRelease)" in {lag["event"] for lag in lags}


@pytest.mark.parametrize("gtk", [4], indirect=True)
@pytest.mark.usefixtures("gtk")
def test_windows_of_gtk_4(interpreter, tmp_path):
    functions = ("on_clicked", "on_response", "wait_for_it")
    blocks, lags = seen(interpreter, HERE / "gtk4_window.py", tmp_path / "store", functions)
    assert names_of(blocks) == {
        "on_clicked": "clicked: Orders.on_clicked",
        "on_response": "response: Orders.on_response",
        "wait_for_it": "idle: Orders.wait_for_it",
    }
    assert (blocks["on_clicked"][1], blocks["on_response"][1]) == ("Orders", "Sure")
    slowest = max(
        (lag for lag in lags if lag["event"] == "clicked: Orders.on_clicked (ButtonRelease)"),
        key=lambda lag: lag["duration_ms"],
    )
    assert slowest["scene"] == "Orders"
    assert slowest["duration_ms"] >= 250
