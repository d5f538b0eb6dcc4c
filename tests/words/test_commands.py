"""Command lines that people copy into a shell."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from loopcanary.words.commands import reading


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_default_store_is_not_named(here: Path) -> None:
    assert reading("report", ()) == "loopcanary report"
    assert reading("report", [here / ".loopcanary"]) == "loopcanary report"


@pytest.mark.parametrize("name", ["stalls", "two words", "o'clock", "$HOME `id`", "other/.loopcanary"])
def test_a_shell_reads_the_store_as_it_is(here: Path, name: str) -> None:
    line = reading("show 1", [here / name, here / ".loopcanary"])
    assert shlex.split(line) == [
        *("loopcanary", "show", "1", "--store", str(here / name)),
        *("--store", str(here / ".loopcanary")),
    ]


def test_no_store_moves_the_cursor(here: Path) -> None:
    assert reading("report", [here / "a\x1b[2J"]).isprintable()
