"""Programs that PyInstaller makes one folder or one file of, with no Python and no loopcanary beside them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

pytest.importorskip("PyInstaller", reason="the extra `frozen` is not installed: it takes a minute")
pytestmark = [
    pytest.mark.native,
    pytest.mark.skipif(
        not sysconfig.get_config_var("Py_ENABLE_SHARED"), reason="PyInstaller needs a libpython.so"
    ),
]

PROGRAM = """
import asyncio, sys, time
import loopcanary

def hold_up():
    time.sleep(0.6)

async def main():
    await asyncio.sleep(0)
    hold_up()
    await asyncio.sleep(0)

loopcanary.install(threshold="300ms", store=sys.argv[1], console=True)
asyncio.run(main())
"""


@pytest.mark.parametrize(("way", "made"), [("--onedir", "app/app"), ("--onefile", "app")])
def test_a_frozen_program_reports_a_stall(tmp_path: Path, way: str, made: str):
    (tmp_path / "app.py").write_text(PROGRAM, encoding="utf-8")
    freeze = [sys.executable, "-m", "PyInstaller", way, "--noconfirm", "--log-level=WARN", "app.py"]
    subprocess.run(freeze, cwd=tmp_path, capture_output=True, check=True)
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("LOOPCANARY", "PYTHON"))
    }
    store = str(tmp_path / "store")
    done = subprocess.run(
        [tmp_path / "dist" / made, store], cwd="/", env=clean, capture_output=True, text=True, check=True
    )
    assert "[loopcanary] stall " in done.stderr
    report = [sys.executable, "-m", "loopcanary", "report", "--store", store, "--format", "json"]
    stalls = json.loads(subprocess.check_output(report, env=clean))["stalls"]
    assert ("hold_up", "app.py", 6) in {
        (one["function"], one["file"], one["line"]) for stall in stalls if (one := stall["culprit"])
    }
