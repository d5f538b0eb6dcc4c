from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from loopcanary.store import Retention, Store

LOOPCANARY = "import sys; from loopcanary.cli import main; sys.exit(main())"
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, and an environment without settings of ours."""
    for name in [name for name in os.environ if name.startswith("LOOPCANARY")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "80")
    folder = tmp_path / "place"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def store(place: Path) -> Iterator[Store]:
    made = Store(place / ".loopcanary", retention=Retention(age_ns=1 << 62))
    yield made
    made.close()


@pytest.fixture
def loopcanary(place: Path, package_path: Path) -> Run:
    """Runs a command line in a process of its own."""

    def run(*arguments: str, flags: tuple[str, ...] = (), **environ: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join(filter(None, [str(package_path), os.environ.get("PYTHONPATH")]))
        return subprocess.run(
            [sys.executable, *flags, "-c", LOOPCANARY, *arguments],
            cwd=place,
            env={**os.environ, "PYTHONPATH": path, **environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )

    return run
