"""loopcanary wrong."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from tests.building.stalls import KILLED, SESSION, STALL

from loopcanary.cli import main
from loopcanary.model import Stall
from loopcanary.store import Store

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def filled(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("LOOPCANARY_RETENTION", "40000d")
    store.put([SESSION], [KILLED, STALL])
    store.close()
    return store


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(
    ("which", "stall"),
    [("1", KILLED), (STALL.fingerprint, STALL), (STALL.id, STALL)],
    ids=["1", "a bug", "a stall"],
)
def test_the_text_names_nothing_and_nothing_is_written_unasked(
    place: Path, capsys: Captured, which: str, stall: Stall
) -> None:
    assert main(["wrong", which]) == 0
    text = capsys.readouterr().out
    assert text.startswith("**Wrong diagnosis** (loopcanary ")
    assert "What is wrong, and what is right" in text
    assert stall.cause.value in text
    assert stall.culprit is not None
    for told in (stall.culprit.file, stall.culprit.qualname, SESSION.host, SESSION.name):
        assert told not in text
    assert not (place / "loopcanary-wrong.zip").exists()


@pytest.mark.usefixtures("filled")
def test_the_same_stall_is_written_redacted(place: Path, capsys: Captured) -> None:
    assert main(["wrong", STALL.id, "--yes", "-o", "a.zip"]) == 0
    assert "a.zip: written" in capsys.readouterr().err
    assert STALL.culprit is not None
    with zipfile.ZipFile(place / "a.zip") as archive:
        held = b"".join(archive.read(name) for name in archive.namelist()).decode()
    assert STALL.id in held
    assert KILLED.id not in held
    assert STALL.culprit.file not in held


@pytest.mark.usefixtures("filled")
def test_what_is_not_there_is_said(capsys: Captured) -> None:
    assert main(["wrong", "9"]) == 1
    assert "has no bug number 9" in capsys.readouterr().err
