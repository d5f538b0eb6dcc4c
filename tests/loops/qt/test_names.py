"""Qt's classes of receivers in names of callbacks; and Qt 5, where there is one, is watched like Qt 6."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from tests.loops.slept import by_sleep
from tests.program.watching import Watched

pytestmark = pytest.mark.native

PROGRAM = Path(__file__).parent / "named_window.py"
NAMES = {
    "timerEvent": "QWidget: Timer",
    "by_ticker": "QTimer: Timer",
    "by_button": "QPushButton: MouseButtonRelease",
}


def python_with(binding: str) -> str:
    """This Python, or the system's one where it can load the same extension: distributions have Qt 5."""
    asks = (
        f"import {binding}.QtWidgets, sys, sysconfig;"
        "print(sys.version_info[:2], sysconfig.get_config_var('SOABI'))"
    )
    ours = f"{sys.version_info[:2]} {sysconfig.get_config_var('SOABI')}"
    for python in (sys.executable, shutil.which("python3", path="/usr/bin") or sys.executable):
        done = subprocess.run([python, "-c", asks], capture_output=True, text=True, timeout=60, check=False)
        if done.returncode == 0 and done.stdout.strip() == ours:
            return python
    pytest.skip(f"no Python of {ours} has {binding}")


@pytest.mark.parametrize("binding", ["PySide6", "PyQt6", "PyQt5", "PySide2"])
def test_callbacks_bear_the_classes_of_their_receivers(binding, package_path, tmp_path):
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "loopcanary").symlink_to(package_path / "loopcanary")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
    done = subprocess.run(
        [python_with(binding), str(PROGRAM), str(tmp_path / "store"), binding],
        env=clean | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = Watched(store=tmp_path / "store", engine="native").report()
    stalls = by_sleep(report, json.loads(done.stdout.splitlines()[-1]))
    assert {function: stall["callback"]["name"] for function, stall in stalls.items()} == NAMES
    assert {stall["loop"] for stall in stalls.values()} == {"qt"}
    assert stalls["by_button"]["scene"] == "Orders"
    assert "QPushButton: MouseButtonRelease" in {
        issue["event"] for issue in report["issues"] if issue["kind"] == "input"
    }
