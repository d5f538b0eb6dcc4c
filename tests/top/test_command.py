"""The command line of `loopcanary top`."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from loopcanary.cli import main
from loopcanary.cli.commands import top
from loopcanary.top.choosing import ORDERS

Captured = pytest.CaptureFixture[str]
pytestmark = pytest.mark.usefixtures("place")


def told(capsys: Captured) -> str:
    """The one line on stderr."""
    captured = capsys.readouterr()
    assert captured.out == ""
    [line] = captured.err.splitlines()
    assert line.startswith("loopcanary: ")
    return line


def test_without_textual_it_says_how_to_get_it(capsys: Captured, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "textual", None)
    assert main(["top"]) == 2
    assert "pip install 'loopcanary[top]'" in told(capsys)


def test_once_loads_no_textual(loopcanary: Any):
    ran = loopcanary("top", "--once", "--interval", "0.1", "--format", "json", flags=("-X", "importtime"))
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["schema"] == 1
    loaded = {line.rpartition("|")[2].strip() for line in ran.stderr.splitlines()}
    assert "loopcanary.top.rows" in loaded
    assert not [name for name in loaded if name.split(".")[0] == "textual"]


def test_a_screen_needs_a_terminal(capsys: Captured, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(top.importlib.util, "find_spec", lambda _: object())
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    assert main(["top"]) == 2
    assert "--once" in told(capsys)


BAD_USE = {
    "an order that is none": ["--once", "--sort", "magic"],
    "a format that is none": ["--once", "--format", "pdf"],
    "a format for the screen": ["--format", "json"],
    "no time between": ["--once", "--interval", "0"],
    "an empty filter": ["--once", "--filter", ""],
    "a theme that is none": ["--theme", "pink"],
}


@pytest.mark.parametrize("arguments", BAD_USE.values(), ids=BAD_USE)
def test_bad_use_is_status_2_and_one_line(capsys: Captured, arguments: list[str]):
    assert main(["top", *arguments]) == 2
    assert told(capsys)


def test_nothing_that_was_asked_for_is_status_1(capsys: Captured):
    assert main(["top", "--once", "--interval", "0.1", "--filter", "no program is called so"]) == 1
    capsys.readouterr()


def test_orders_of_the_command_are_those_that_there_are():
    [option] = [one for one in top.command.params if one.name == "sort"]
    assert list(option.type.choices) == list(ORDERS)


@pytest.mark.parametrize(
    ("theme", "colours", "is_dark"),
    [
        ("auto", "", True),
        ("auto", "15;0", True),
        ("auto", "0;15", False),
        ("auto", "0;default;7", False),
        ("auto", "15;8", True),
        ("dark", "0;15", True),
        ("light", "", False),
    ],
)
def test_light_and_dark(monkeypatch: pytest.MonkeyPatch, theme: str, colours: str, is_dark: bool):
    monkeypatch.setenv("COLORFGBG", colours)
    assert top._is_dark(theme) is is_dark
