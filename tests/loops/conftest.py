from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest

_ASKS = (
    "import gi.repository.GLib, sys, sysconfig;print(sys.version_info[:2], sysconfig.get_config_var('SOABI'))"
)


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python with PyGObject that can load this loopcanary."""

    python: str
    package_path: Path

    def run(self, *words: str | Path) -> str:
        """A program of its own, to its end; what it prints."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
        done = subprocess.run(
            [self.python, *map(str, words)],
            env=clean | {"PYTHONPATH": str(self.package_path)},
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def _facts(python: str, asks: str) -> str | None:
    done = subprocess.run([python, "-c", asks], capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


@pytest.fixture(scope="session")
def interpreter(package_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Interpreter:
    """This Python, or the system's one, for which distributions build PyGObject. An extension of the same
    version and ABI fits."""
    ours = f"{sys.version_info[:2]} {sysconfig.get_config_var('SOABI')}"
    for python in (sys.executable, shutil.which("python3", path="/usr/bin") or sys.executable):
        if _facts(python, _ASKS) == ours:
            # Nothing but loopcanary of the folder that it is installed in.
            folder = tmp_path_factory.mktemp("package")
            (folder / "loopcanary").symlink_to(package_path / "loopcanary")
            return Interpreter(python, folder)
    pytest.skip(f"no Python of {ours} has PyGObject (gi)")
