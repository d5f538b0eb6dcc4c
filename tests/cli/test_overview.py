"""What the command line says of itself: sections, examples, names of options and stores."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import click
import pytest
from tests.building.stalls import KILLED, SESSION, STALL

from loopcanary.cli import main
from loopcanary.cli.command_line import COMMANDS, EXAMPLES, SECTIONS, cli
from loopcanary.store import Retention, Store

Captured = pytest.CaptureFixture[str]
_LINES = [line for lines in EXAMPLES.values() for line in lines]


@pytest.fixture
def filled(store: Store) -> Store:
    store.put([SESSION], [STALL, KILLED])
    store.close()
    return store


def test_every_command_is_in_one_section_and_has_examples() -> None:
    assert len(set(COMMANDS)) == sum(map(len, SECTIONS.values()))
    assert set(EXAMPLES) == set(COMMANDS)


@pytest.mark.parametrize("line", _LINES)
def test_an_example_is_a_command_line(line: str) -> None:
    program, name, *arguments = shlex.split(line)
    assert program == "loopcanary"
    with click.Context(cli) as parent:
        command = cli.get_command(parent, name)
        assert command is not None
        command.make_context(name, arguments, parent)  # raises UsageError


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_has_its_examples(capsys: Captured, name: str) -> None:
    main([name, "--help"])
    shown = capsys.readouterr().out
    assert all(f"\n    {line}\n" in f"{shown}\n" for line in EXAMPLES[name])


def test_a_mistyped_command_gets_the_nearest(capsys: Captured) -> None:
    assert main(["reprot"]) == 2
    assert "did you mean report?" in capsys.readouterr().err


def test_a_run_is_chosen_by_the_start_of_its_id(filled: Store, capsys: Captured) -> None:
    folder = str(filled.folder)
    assert main(["report", folder, "--run", SESSION.id, "--format", "json"]) == 0
    assert {one["session"] for one in json.loads(capsys.readouterr().out)["stalls"]} == {SESSION.id}
    assert main(["report", folder, "--run", "none-begins-so"]) == 1


def test_several_stores_are_reported_as_one(filled: Store, tmp_path: Path, capsys: Captured) -> None:
    other = Store(tmp_path / "other", retention=Retention(age_ns=1 << 62))
    other.put([replace(SESSION, id="s2")], [replace(STALL, id="s2-1", session="s2")])
    other.close()
    assert main(["report", str(filled.folder), str(other.folder), "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert {one["id"] for one in report["sessions"]} == {SESSION.id, "s2"}
    [group] = [one for one in report["groups"] if one["fingerprint"] == STALL.fingerprint]
    assert set(group["stall_ids"]) == {STALL.id, "s2-1"}
    assert main(["report", str(filled.folder), "--store", str(tmp_path / "none")]) == 1


_READING = (
    ["report"],
    ["show", "1"],
    ["diff", "--before", "1d"],
    ["export", "--format", "jsonl"],
    ["bundle", "--output", "-"],
    ["doctor", "--no-self-test"],
    ["clean", "--keep", "9"],
    ["ui", "--no-browser"],
    ["top", "--once"],
)


@pytest.mark.parametrize("arguments", _READING, ids=lambda words: words[0])
def test_every_command_that_reads_takes_several_stores(
    filled: Store, place: Path, capsys: Captured, arguments: list[str]
) -> None:
    none = str(place / "none")
    for words in (["--store", str(filled.folder), none], [str(filled.folder), "--store", none]):
        assert main([*arguments, *words]) == 1
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err == (
            f"loopcanary: there is no store in {none}: `loopcanary run PROGRAM` makes one, "
            "--store names another\n"
        )


@pytest.mark.parametrize("arguments", _READING, ids=lambda words: words[0])
def test_a_folder_that_is_no_store_is_left_alone(place: Path, capsys: Captured, arguments: list[str]) -> None:
    (place / "notes").mkdir()
    (place / "notes" / "today").touch()
    (place / "notes" / ".gitignore").write_text("*.pyc\n")
    assert main([*arguments, "notes"]) == 2
    assert f"loopcanary: {place}/notes is not a store: `loopcanary run" in capsys.readouterr().err
    assert sorted(path.name for path in (place / "notes").iterdir()) == [".gitignore", "today"]


@pytest.mark.parametrize("arguments", _READING, ids=lambda words: words[0])
def test_a_file_is_no_store(place: Path, capsys: Captured, arguments: list[str]) -> None:
    (place / "notes").touch()
    assert main([*arguments, "notes"]) == 2
    assert "notes is a file" in capsys.readouterr().err


def test_show_and_export_read_several_stores_as_one(filled: Store, place: Path, capsys: Captured) -> None:
    other = Store(place / "other", retention=Retention(age_ns=1 << 62))
    other.put([replace(SESSION, id="s2")], [STALL, replace(STALL, id="s2-1", session="s2")])
    other.close()
    assert main(["export", "--format", "jsonl", ".loopcanary", "other"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["id"] for line in lines] == ["s1-1", "s1-2", "s2-1"]
    for which in ("2", STALL.fingerprint):
        assert main(["show", which, ".loopcanary", "--store", "other", "--format", "json"]) == 0
        shown = json.loads(capsys.readouterr().out)
        assert {one["id"] for one in shown["sessions"]} == {SESSION.id, "s2"}
    assert main(["show", "s2-1", "other", ".loopcanary"]) == 0


@pytest.mark.parametrize(
    "arguments", [["export", "--format", "csv"], ["show", "1"], ["clean", "--keep", "9"]]
)
def test_a_store_is_an_argument_or_an_option(
    filled: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured, arguments: list[str]
) -> None:
    folder = str(filled.folder.absolute())
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert main([*arguments, folder]) == 0
    as_argument = capsys.readouterr().out
    assert main([*arguments, "--store", folder]) == 0
    assert capsys.readouterr().out == as_argument
    assert main([*arguments, folder, "--store", folder]) == 0
    assert capsys.readouterr().out == as_argument


AS_BEFORE_8_4 = """
import click
class ParamType(click.ParamType):
    name = "as of an older click: ParamType[...] raises"
click.ParamType = ParamType
from loopcanary.cli.command_line import COMMANDS, cli
for name in COMMANDS:
    assert cli.get_command(click.Context(cli), name)
"""


def test_commands_need_no_newer_click(package_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(package_path)}
    subprocess.run([sys.executable, "-c", AS_BEFORE_8_4], env=environment, check=True)
