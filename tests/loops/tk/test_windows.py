"""Windows of Tk's: every block is seen once, at its line, with its cause, length and command."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.loops.blocked import (
    SHARED,
    BlockedRun,
    assert_length,
    assert_shared,
    is_explained,
    own_line,
)
from tests.program.watching import PROGRAMS, Marks, Watched, admitted

pytestmark = pytest.mark.native

PROGRAM = Path(__file__).parent / "window_blocks.py"
OWN_MARKS = Marks(PROGRAM.read_text())
OWN = {
    # kind: (the culprit's function, causes, how the command is called)
    "binding": ("on_press", ("sleep",), ".field: binding.<locals>.on_press (<Button-1>)"),
    "command": ("on_click", ("sleep",), ".send: command.<locals>.on_click"),
    "when_idle": ("refresh", ("sleep",), "after_idle: when_idle.<locals>.refresh"),
    "trace": ("changed", ("sleep",), "after: trace.<locals>.call"),
    "after_that_sleeps": ("call", ("sleep",), "after: after_that_sleeps.<locals>.call"),
    "file_handler": ("readable", ("sleep",), None),
    "in_an_inner_loop": ("inside", ("sleep",), "after: in_an_inner_loop.<locals>.inside"),
    "after_an_inner_loop": ("opens", ("sleep",), "after: after_an_inner_loop.<locals>.opens"),
    "after_update": ("steps", ("sleep",), "after: after_update.<locals>.steps"),
}
MARKED_BY_KIND = {"after_that_sleeps"}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> BlockedRun:
    folder = tmp_path_factory.mktemp("window")
    watched, truth_file = Watched(store=folder / "store", engine="native"), folder / "truth.json"
    watched.run(PROGRAM, PROGRAMS, truth_file, folder, *SHARED, *OWN, "burst", cwd=folder)
    return BlockedRun(truth_file, watched.report())


@pytest.mark.parametrize("kind", SHARED)
def test_an_after_callback_that_blocks(run, kind):
    stall = assert_shared(run, kind)
    assert stall["loop"] == "tk"
    assert stall["callback"]["name"] == "after: Drive.by_timer.<locals>.call"


@pytest.mark.parametrize("kind", OWN)
def test_a_command_that_blocks(run, kind):
    function, causes, name = OWN[kind]
    stall = assert_length(run, kind)
    line = own_line(OWN_MARKS, kind, kind if kind in MARKED_BY_KIND else function)
    assert (stall["culprit"]["function"], stall["culprit"]["line"]) == (function, line)
    assert stall["cause"] in admitted(stall, causes), stall["evidence"]
    assert stall["callback"]["name"] == name


def test_many_short_callbacks_are_a_burst(run):
    if run.truth["burst"]["longest_callback_ns"] >= 100_000_000:
        pytest.skip("the machine stopped a callback of half a millisecond")
    stall = run.stall_of("burst")
    assert stall["cause"] in admitted(stall, ("burst",))
    names = [contributor["name"] for contributor in stall["contributors"]]
    assert names[0] == "burst.<locals>.short", names


def test_nothing_else_is_reported_but_what_the_host_did(run):
    assert [stall for stall in run.others() if not is_explained(stall)] == []
