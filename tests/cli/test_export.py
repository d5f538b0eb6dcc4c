"""loopcanary export."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from tests.building.stalls import BEGAN, KILLED, SESSION, STALL, S

from loopcanary.cli import main
from loopcanary.registry import EXPORTERS, REGISTRY
from loopcanary.store import Store

WORKER = replace(
    STALL, id="s1-3", fingerprint="1:beef", thread="worker", loop="thread", began_wall_ns=BEGAN + 120 * S
)


@pytest.fixture
def filled(store: Store) -> Store:
    store.put([SESSION], [KILLED, WORKER, STALL])
    store.close()
    return store


def exported(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """Ids of the stalls that a selection gives, in their order."""
    assert main(["export", "--format", "jsonl", *arguments]) == 0
    return [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()]


@pytest.mark.usefixtures("filled")
def test_all_stalls_come_thread_by_thread(capsys: pytest.CaptureFixture[str]) -> None:
    assert exported(capsys) == ["s1-1", "s1-3", "s1-2"]


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (["--bug", "1:f"], ["s1-1"]),
        (["--stall", "s1-2"], ["s1-2"]),
        (["--cause", "lock"], ["s1-2"]),
        (["--scene", "checkout"], ["s1-2"]),
        (["--loop", "thread"], ["s1-3"]),
        (["--thread", "MainThread"], ["s1-1"]),
        (["--run", "s"], ["s1-1", "s1-3", "s1-2"]),
        (["--since", "2023-11-14T22:14:00Z"], ["s1-3", "s1-2"]),
        (["--until", "2023-11-14T22:14:00Z"], ["s1-1"]),
        (["--text", "cache.py"], ["s1-2"]),
    ],
)
def test_a_selection_gives_what_it_names(
    capsys: pytest.CaptureFixture[str], asked: list[str], expected: list[str]
) -> None:
    assert exported(capsys, *asked) == expected


@pytest.mark.usefixtures("filled")
def test_a_file_is_private_and_whole(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = place / "trace.json"
    target.write_text("what was there before")
    assert main(["export", "--format", "chrome", "--output", str(target)]) == 0
    names = {event["name"] for event in json.loads(target.read_bytes())["traceEvents"]}
    assert {STALL.title, KILLED.title, "process_name"} <= names
    assert target.stat().st_mode & 0o777 == 0o600
    assert {path.name for path in place.iterdir()} == {".loopcanary", "trace.json"}
    assert capsys.readouterr().out == ""


@pytest.mark.usefixtures("filled")
def test_what_is_no_file_is_written_to_and_stays(place: Path) -> None:
    """/dev/null, by root: a file in its place would be the end of it."""
    target = place / "pipe"
    os.mkfifo(target)
    reader = os.open(target, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert main(["export", "--format", "csv", "--output", str(target)]) == 0
        assert os.read(reader, 1 << 20).count(b"s1-") >= 3
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(target.stat().st_mode)
    assert {path.name for path in place.iterdir()} == {".loopcanary", "pipe"}


@pytest.mark.usefixtures("filled")
def test_programs_go_by_their_names(place: Path) -> None:
    assert main(["export", "--format", "collapsed", "--output", "out"]) == 0
    lines = (place / "out").read_text().splitlines()
    assert lines
    assert all(line.startswith("shop;") for line in lines)


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(
    ("asked", "status", "says"),
    [
        (["--format", "svg"], 2, "'svg' is not a format: use perfetto, chrome"),
        (["--format", "csv", "--bug", "9"], 1, "no bug in the store begins with 9"),
        (
            ["--format", "csv", "--bug", "1:"],
            2,
            "1: is ambiguous: 1:beef, 1:dead, 1:f00d begin so; ",
        ),
        (
            ["--format", "csv", "--stall", "s1-"],
            2,
            "s1- is ambiguous: s1-1, s1-2, s1-3 begin so; ",
        ),
        (["--format", "csv", "--stall", "x"], 1, "no stall in the store begins with x"),
        (["--format", "csv", "--scene", "nowhere"], 1, "no stall matches"),
        (["--format", "csv", "--output", "no/such/folder"], 2, "no/such/folder cannot be written"),
    ],
)
def test_a_failed_export_is_one_line_and_leaves_no_file(
    place: Path, capsys: pytest.CaptureFixture[str], asked: list[str], status: int, says: str
) -> None:
    assert main(["export", *asked]) == status
    captured = capsys.readouterr()
    [line] = captured.err.splitlines()
    assert says in line
    assert captured.out == ""
    assert [path.name for path in place.iterdir()] == [".loopcanary"]


@pytest.mark.usefixtures("place")
def test_without_a_store_nothing_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "--format", "csv"]) == 1
    assert "there is no store" in capsys.readouterr().err


@pytest.mark.usefixtures("filled")
def test_a_pipe_gets_the_bytes(loopcanary: Callable[..., CompletedProcess[str]]) -> None:
    done = loopcanary("export", "--format", "csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 4


def test_every_format_is_in_its_help_and_on_its_page(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "--help"]) == 0
    told = capsys.readouterr().out, (tree / "docs/how-to/export.md").read_text(encoding="utf-8")
    names = [one.name for one in REGISTRY.of(EXPORTERS) if one.is_built_in]
    assert [name for name in names if not all(name in text for text in told)] == []
