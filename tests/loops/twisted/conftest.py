from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest


@pytest.fixture
def run_python() -> Callable[[str], None]:
    """run_python(source): a program of its own, to its end."""

    def run(source: str) -> None:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
        done = subprocess.run(
            [sys.executable, "-c", source],
            env=clean,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    return run
