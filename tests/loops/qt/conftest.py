from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture(autouse=True, scope="session")
def offscreen():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QT_QPA_PLATFORM", "offscreen")
        yield


@pytest.fixture
def run_window() -> Callable[[str, str], Any]:
    """run_window(binding, source): a program of its own, to its end; what it prints last, as JSON."""

    def run(binding: str, source: str) -> Any:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
        head = f"from {binding} import QtCore, QtWidgets\n" if f"from {binding} import" not in source else ""
        done = subprocess.run(
            [sys.executable, "-c", head + source],
            env=clean,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run
