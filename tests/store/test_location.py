from __future__ import annotations

from pathlib import Path

import pytest

from loopcanary.store import Location, find, locate
from loopcanary.store import location as location_module


@pytest.fixture
def read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The current folder cannot be written; the user's can."""
    monkeypatch.setattr(location_module, "_writable", lambda folder: folder.name != ".loopcanary")


def test_the_folder_given_is_taken_relative_to_the_current_one(tmp_path: Path) -> None:
    assert locate(Path("x"), cwd=tmp_path) == Location(folder=tmp_path / "x")
    assert locate(Path("/x"), cwd=tmp_path) == Location(folder=Path("/x"))


def test_a_tilde_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert locate(Path("~/stalls"), cwd=Path("/")).folder == tmp_path / "stalls"


def test_the_current_folder_comes_first(tmp_path: Path) -> None:
    assert locate(cwd=tmp_path) == Location(folder=tmp_path / ".loopcanary")


@pytest.mark.usefixtures("read_only")
def test_an_unwritable_folder_falls_back_to_the_users(tmp_path: Path) -> None:
    found = locate(cwd=tmp_path, environ={"XDG_STATE_HOME": "/state"})
    assert found.folder == Path("/state/loopcanary")
    assert found.notice == f"{tmp_path} cannot be written: stalls are stored in /state/loopcanary"


@pytest.mark.usefixtures("read_only")
@pytest.mark.parametrize("environ", [{}, {"XDG_STATE_HOME": ""}, {"XDG_STATE_HOME": "relative"}])
def test_the_users_folder_without_a_state_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert locate(cwd=tmp_path, environ=environ).folder == tmp_path / ".local/state/loopcanary"


@pytest.mark.usefixtures("read_only")
def test_nothing_is_stored_without_a_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError

    monkeypatch.setattr(Path, "home", no_home)
    found = locate(cwd=tmp_path, environ={})
    assert found.folder == tmp_path / ".loopcanary"
    assert found.notice == (
        "the current folder cannot be written and you have no home folder: choose another --store; stalls "
        "are not stored"
    )
    assert not found.is_usable
    assert find(cwd=tmp_path, environ={}).folder == tmp_path / ".loopcanary"


def test_where_no_place_can_be_written_that_is_said(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()  # no folder can be made below it, not even by root
    found = locate(cwd=file, environ={"XDG_STATE_HOME": f"{file}/state"})
    neither = f"neither {file} nor {file}/state/loopcanary can be written"
    assert found.notice == f"{neither}: stalls are not stored; choose another --store"
    assert not found.is_usable


def test_reports_fall_back_to_the_users_store(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path / "state")}
    assert find(cwd=tmp_path, environ=environ).folder == tmp_path / ".loopcanary"
    (tmp_path / "state" / "loopcanary").mkdir(parents=True)
    assert find(cwd=tmp_path, environ=environ).folder == tmp_path / "state" / "loopcanary"
    (tmp_path / ".loopcanary").mkdir()
    assert find(cwd=tmp_path, environ=environ).folder == tmp_path / ".loopcanary"
