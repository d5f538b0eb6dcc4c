"""A folder of another user's, and commands that root runs in it."""

from __future__ import annotations

import difflib  # noqa: F401 - the other user may not read this Python, here and below
import encodings.utf_8_sig  # noqa: F401
import os
import shutil
import sqlite3  # noqa: F401
import subprocess
import sys
import tempfile
import tomllib  # noqa: F401
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.building.stalls import SESSION, STALL

import loopcanary.cli.ci_settings
import loopcanary.config.files
import loopcanary.words.text
from loopcanary import whose_folder
from loopcanary.store import Retention, Store

NOBODY, OTHER = 65_534, 65_533
FOREVER = Retention(age_ns=1 << 62)


def as_nobody(work: Callable[[], object]) -> None:
    """Runs the work in a child that is the other user's."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            work()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Root's home."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.delenv("LOOPCANARY_TRUST", raising=False)
    for name, empty in (("_held", {}), ("_lenders", set())):
        monkeypatch.setattr(whose_folder, name, empty)
    return tmp_path


@pytest.fixture
def theirs(root: Path) -> Iterator[Path]:
    """A folder of the other user's, which that user can reach: pytest's own is private."""
    outer = Path(tempfile.mkdtemp())
    outer.chmod(0o755)
    folder = outer / "theirs"
    folder.mkdir()
    os.chown(folder, NOBODY, NOBODY)
    yield folder
    while outer.exists():  # a keeper may be at its end
        shutil.rmtree(outer, ignore_errors=True)


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """An empty folder of root's, where links lead."""
    folder = tmp_path / "victim"
    folder.mkdir()
    return folder


@pytest.fixture
def store(theirs: Path) -> Path:
    """The other user's store, with one stall."""
    folder = theirs / ".loopcanary"

    def fill() -> None:
        one = Store(folder, retention=FOREVER)
        one.put([SESSION], [STALL])
        one.close()
        for name in ("flight", "keeper", "notifications"):
            (folder / name).mkdir(mode=0o700)

    as_nobody(fill)
    return folder


@pytest.fixture
def loopcanary(theirs: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a command as root in the other user's folder."""

    def run(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", "-m", "loopcanary", *words]
        settings = {**os.environ, "COLUMNS": "110", **more}
        return subprocess.run(
            command, cwd=theirs, env=settings, capture_output=True, text=True, check=False, timeout=280
        )

    return run


def seen(folder: Path) -> dict[str, tuple[int, ...]]:
    """All that lies there, with what a change would change."""
    found = {}
    for path in [folder, *folder.rglob("*")]:
        facts = path.lstat()
        found[str(path)] = (facts.st_ino, facts.st_uid, facts.st_mode, facts.st_size, facts.st_mtime_ns)
    return found
