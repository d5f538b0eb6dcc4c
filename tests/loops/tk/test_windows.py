"""Windows of Tk's: every block is seen once, at its line, with its cause, length and command; quiet ones are
quiet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.program.test_detection import MARKS, STORIES, Run
from tests.program.watching import PROGRAMS, Marks, Watched, admitted, is_by_the_host, unexplained

pytestmark = pytest.mark.native

PROGRAM = Path(__file__).parent / "window_blocks.py"
QUIET = Path(__file__).parent / "quiet_window.py"
OWN_MARKS = Marks(PROGRAM.read_text())
SHARED = (
    *("regex", "json_body", "c_call_with_the_gil", "c_call_without_the_gil", "password_hash", "compress"),
    *("collection", "python_loop", "slow_import", "sleep", "held_lock", "empty_queue", "thread_join"),
    *("child_process", "synced_file", "gil_hog"),
)
CAUSES = {story.kind: story.causes for story in STORIES if story.kind in SHARED}
OWN = {
    # kind: (the culprit's function, causes, how the command is called)
    "binding": ("on_press", ("sleep",), ".field: binding.<locals>.on_press (<Button-1>)"),
    "command": ("on_click", ("sleep",), ".send: command.<locals>.on_click"),
    "when_idle": ("refresh", ("sleep",), "after_idle: when_idle.<locals>.refresh"),
    "trace": ("changed", ("sleep",), "after: trace.<locals>.call"),
    "after_that_sleeps": ("call", ("sleep",), "after: after_that_sleeps.<locals>.call"),
    "file_handler": ("readable", ("sleep",), None),
    "in_a_dialog": ("inside", ("sleep",), "after: in_a_dialog.<locals>.inside"),
    "after_a_dialog": ("opens", ("sleep",), "after: after_a_dialog.<locals>.opens"),
    "after_update": ("steps", ("sleep",), "after: after_update.<locals>.steps"),
}
MARKED_BY_KIND = {"after_that_sleeps"}
LOOPS_OF_TWO_LINES = {"gil_hog"}
TOLERANCE_MS = 2.0


class WindowRun(Run):
    """One run of the program."""

    def __init__(self, folder: Path, kinds: tuple[str, ...]) -> None:
        self.tolerance_ms = TOLERANCE_MS
        watched = Watched(store=folder / "store", engine="native")
        truth_file = folder / "truth.json"
        watched.run(PROGRAM, PROGRAMS, truth_file, folder, *kinds, cwd=folder)
        self.truth = {facts["name"]: facts for facts in json.loads(truth_file.read_text())}
        self.report = watched.report()
        self.stalls = self.report["stalls"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> WindowRun:
    return WindowRun(tmp_path_factory.mktemp("window"), (*SHARED, *OWN, "burst"))


def assert_length(run: WindowRun, kind: str) -> dict[str, Any]:
    stall, facts = run.stall_of(kind), run.truth[kind]
    assert stall["duration_ms"] < (facts["after_ns"] - facts["before_ns"]) / 1e6 + TOLERANCE_MS
    assert stall["duration_ms"] > (facts["end_ns"] - facts["begin_ns"]) / 1e6 - TOLERANCE_MS
    return stall


@pytest.mark.parametrize("kind", SHARED)
def test_an_after_callback_that_blocks(run, kind):
    stall = assert_length(run, kind)
    assert stall["loop"] == "tk"
    assert stall["cause"] in admitted(stall, CAUSES[kind]), stall["evidence"]
    function, line = MARKS.find(f"culprit of {kind}")
    assert stall["culprit"]["function"] == function
    assert stall["culprit"]["line"] in ((line, line + 1) if kind in LOOPS_OF_TWO_LINES else (line,))
    assert stall["callback"]["name"] == "after: by_after.<locals>.call"


@pytest.mark.parametrize("kind", OWN)
def test_a_command_that_blocks(run, kind):
    function, causes, name = OWN[kind]
    stall = assert_length(run, kind)
    line = OWN_MARKS.find(f"culprit of {kind if kind in MARKED_BY_KIND else function}")[1]
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


def is_explained(stall: dict[str, Any]) -> bool:
    """By the host, by what the program prepares on its other thread, which computes with the GIL, or by its
    own collection between two kinds, which takes as long as there are young objects."""
    if stall["cause"] == "gc" and (stall["culprit"] or {}).get("source") == "gc.collect(0)":
        return True
    holder = stall["holder"]
    is_preparing = holder is not None and holder["thread"].startswith("ThreadPoolExecutor")
    return is_preparing or is_by_the_host(stall) or "host" in admitted(stall, (stall["cause"],))


def test_nothing_else_is_reported_but_what_the_host_did(run):
    known = {stall["id"] for kind in run.truth for stall in run.stalls_of(kind)}
    others = [stall for stall in run.stalls if stall["id"] not in known]
    assert [stall for stall in others if not is_explained(stall)] == []


def test_idle_and_animated_windows_are_no_stalls(tmp_path):
    watched = Watched(store=tmp_path / "store", engine="native")
    done = watched.run(QUIET)
    report = watched.report()
    (session,) = report["sessions"]
    (loop,) = session["loops"]
    assert int(done.stdout) >= 60
    assert loop["kind"] == "tk"
    assert unexplained(report["stalls"]) == []
    # Five waits of one and a half seconds each, and what the progress bar slept.
    assert loop["utilization"] < 0.5
