from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with an empty folder `in`, and no setting of ours but a store that keeps old logs."""
    for name in [name for name in os.environ if name.startswith("LOOPCANARY")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LOOPCANARY_RETENTION", "40000d")
    folder = tmp_path / "place"
    (folder / "in").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder
