"""A plain line of `loopcanary run` needs no click, and does what it does with click."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple, NoReturn

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loopcanary.cli import program
from loopcanary.cli.command_line import run_command
from loopcanary.cli.options import RUN_ONLY, SETTINGS
from loopcanary.model.config import ENGINES

NONE: Mapping[str, str] = {}


class Outcome(NamedTuple):
    """What a line came to: the program's words and environment, or a status or nothing; and what was said."""

    started: tuple[list[str], dict[str, str]] | None
    status: int | None
    said: str


class StartedError(BaseException):
    """Stands for the program: nothing of this process comes after it."""


def _execve(executable: str, words: list[str], environment: dict[str, str]) -> NoReturn:
    assert executable == sys.executable
    assert environment.pop("LOOPCANARY_RUN_NS").isdecimal()  # the moment of the exec
    raise StartedError(words, environment)


def outcome(call: Callable[[], int | None], variables: Mapping[str, str]) -> Outcome:
    said, started, status = io.StringIO(), None, None
    with pytest.MonkeyPatch.context() as patch, redirect_stderr(said), redirect_stdout(said):
        patch.setattr(os, "execve", _execve)
        for name, value in variables.items():
            patch.setenv(name, value)
        try:
            status = call()
        except StartedError as program:
            started = program.args
    return Outcome(started, status, said.getvalue())  # type: ignore[arg-type]


def with_click(line: list[str], variables: Mapping[str, str] = NONE) -> Outcome:
    return outcome(lambda: run_command(["run", *line]), variables)


def plainly(line: list[str], variables: Mapping[str, str] = NONE) -> Outcome:
    return outcome(lambda: program.start_plain_line(line), variables)  # type: ignore[func-returns-value]


# ---- as with click --------------------------------------------------------------------------------

VALUES = st.sampled_from(
    [
        *("50ms", "100", "soon", "", " ", "a", "a,b", "x=y", "native", "Native", "bell", "bell,smoke", "s"),
        *("a.py", "~", "~nobody/s", "https://x", "--quiet", "-m", "--", "\n", "\N{SNOWMAN}", "\udc80"),
    ]
)
NAMES = [option.name for option in (*SETTINGS, *RUN_ONLY)]
WITH_VALUE = [option.name for option in SETTINGS if not option.is_flag]
OPTIONS = st.one_of(
    st.sampled_from(NAMES).map(lambda name: [name]),
    st.tuples(st.sampled_from(WITH_VALUE), VALUES).map(list),
    st.tuples(st.sampled_from(NAMES), VALUES).map(lambda pair: ["=".join(pair)]),
    st.sampled_from(
        ["--help", "-h", "--thresh", "--methods", "-q", "-", "--", "---quiet", "-=x", "--=x"]
    ).map(lambda word: [word]),
)
PROGRAMS = st.sampled_from(
    [
        [],
        ["a.py"],
        ["a.py", "--quiet", ""],
        ["-m", "mod"],
        ["-mmod", "-h"],
        ["-c", "pass"],
        ["-"],
        ["--", "-x"],
    ]
)
LINES = st.builds(
    lambda options, program: [*(word for option in options for word in option), *program],
    st.lists(OPTIONS, max_size=3),
    PROGRAMS,
)
VARIABLES = st.dictionaries(
    st.sampled_from(["LOOPCANARY", "LOOPCANARY_THRESHOLD", "LOOPCANARY_STORE", "LOOPCANARY_ENGINE"]),
    st.sampled_from(["0", "1", "", "20ms", "native", "t"]),
    max_size=2,
)
FILES = st.sampled_from(
    ["", "threshold = '80ms'", "quiet = true", "threshold = 'soon'", "colour = 'red'", "["],
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(line=LINES, variables=VARIABLES, file=FILES)
def test_a_line_starts_what_it_starts_with_click(
    place: Path, line: list[str], variables: dict[str, str], file: str
) -> None:
    """Same words and environment where click says nothing; else nothing, and click says it."""
    (place / "a.py").touch()
    (place / "loopcanary.toml").write_text(file)
    expected = with_click(line, variables)
    is_plain = expected.started is not None and not expected.said
    assert plainly(line, variables) == (expected if is_plain else Outcome(None, None, ""))


PLAIN = {
    "no option": ["-c", "pass"],
    "every option": [
        "--threshold", "50ms", "--store=s", "--name", "shop", "--concern", "a", "--concern=b",
        "--only-concern", "--ignore", "d", "--methods", "shop",
        "--methods-ring", "1MiB", "--engine", "portable", "--no-children", "--while-debugging",
        "--notify", "bell,desktop", "--log-file", "f", "--quiet", "a.py", "--help",
    ],
    "the last of two values": ["--threshold", "", "--threshold", "1s", "a.py"],
    "a value like an option": ["--name", "--quiet", "a.py"],
}  # fmt: skip
NOT_PLAIN = {
    "help": ["--quiet", "-h"],
    "nothing to run": ["--quiet"],
    "a bad value": ["--threshold", "soon", "a.py"],
    "an address": ["--store", "https://x", "a.py"],
    "an unknown option": ["--frobnicate", "a.py"],
}


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("line", PLAIN.values(), ids=PLAIN)
def test_a_plain_line_starts_its_program(line: list[str]) -> None:
    found = plainly(line)
    assert found.started is not None
    assert found == with_click(line)


@pytest.mark.native
@pytest.mark.usefixtures("place")
def test_a_line_that_may_fail_is_plain() -> None:
    found = plainly(["--fail-on-stall", "a.py"])
    assert found.started is not None
    assert found == with_click(["--fail-on-stall", "a.py"])


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("line", NOT_PLAIN.values(), ids=NOT_PLAIN)
def test_what_has_to_be_said_is_the_commands(line: list[str]) -> None:
    assert plainly(line) == Outcome(None, None, "")
    assert with_click(line).said


@pytest.mark.usefixtures("place")
def test_completion_is_the_commands() -> None:
    assert plainly(["a.py"], {"_LOOPCANARY_COMPLETE": "bash_complete"}).started is None


def test_a_store_elsewhere_is_said_by_the_command(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda folder, _: not str(folder).startswith(str(place)))
    said = with_click(["a.py"])
    assert said.started is not None
    assert "stalls are stored in" in said.said
    assert plainly(["a.py"]) == Outcome(None, None, "")


def test_every_engine_can_be_chosen() -> None:
    [engine] = [option for option in SETTINGS if option.name == "--engine"]
    assert engine.choices == ENGINES


# ---- what it loads --------------------------------------------------------------------------------

LOADED = """
import json, os, sys
before = set(sys.modules)
def tell(*_):
    os.write(1, json.dumps(sorted(set(sys.modules) - before)).encode())
    os._exit(0)
os.execve = tell
from loopcanary.cli import main
main()
"""


def test_a_plain_line_loads_neither_click_nor_rich(place: Path, package_path: Path) -> None:
    line = [word for word in PLAIN["every option"] if word != "--help"]
    found = subprocess.run(
        [sys.executable, "-c", LOADED, "run", *line],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(package_path)},
        capture_output=True,
        check=True,
    ).stdout
    loaded = set(json.loads(found))
    assert "loopcanary.cli.program" in loaded
    assert loaded & {"click", "rich", "importlib.metadata", "subprocess", "tomllib", "sqlite3"} == set()
