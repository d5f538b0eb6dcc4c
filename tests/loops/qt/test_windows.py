"""Windows of Qt: every block is seen once, at its line, with cause, length and event."""

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
from tests.program.test_detection import MARKS
from tests.program.watching import PROGRAMS, Marks, Watched, admitted, is_by_the_host

from .needing import needs

pytestmark = pytest.mark.native

PROGRAM = Path(__file__).parent / "window_blocks.py"
OWN_MARKS = Marks(PROGRAM.read_text())
OWN = {
    # kind: (the culprit's mark and its function, causes, the event's end)
    "click": ("slow_slot", "slow_slot", ("sleep",), "QPushButton: MouseButtonRelease"),
    "key": ("keyPressEvent", "keyPressEvent", ("sleep",), "QLineEdit: KeyPress"),
    "paint": ("paintEvent", "paintEvent", ("sleep",), "QWidget: Paint"),
    "queued_slot": ("slow_hearer", "slow_hearer", ("sleep",), "QObject: MetaCall"),
    "wait_for_process": ("wait_for_process", "call", ("subprocess",), ""),
    "lock_of_a_qthread": ("lock_of_a_qthread", "call", ("lock",), ""),
    "query": ("query", "call", ("native-cpu",), ""),
    "in_an_inner_loop": ("inside", "inside", ("sleep",), ""),
    "after_an_inner_loop": ("opens", "opens", ("sleep",), ""),
}


class WindowRun(BlockedRun):
    """One run of the program with one binding."""

    def __init__(self, folder: Path, binding: str, kinds: tuple[str, ...]) -> None:
        watched = Watched(store=folder / "store", engine="native")
        truth_file = folder / "truth.json"
        watched.run(PROGRAM, PROGRAMS, binding, truth_file, folder, *kinds, cwd=folder)
        super().__init__(truth_file, watched.report())


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> WindowRun:
    needs("PySide6")
    return WindowRun(tmp_path_factory.mktemp("pyside"), "PySide6", (*SHARED, *OWN, "burst"))


def assert_own(run: WindowRun, kind: str) -> None:
    mark, function, causes, event = OWN[kind]
    stall = assert_length(run, kind)
    line = own_line(OWN_MARKS, kind, mark)
    assert (stall["culprit"]["function"], stall["culprit"]["line"]) == (function, line)
    assert stall["cause"] in admitted(stall, causes), stall["evidence"]
    assert stall["callback"]["name"].endswith(event)


@pytest.mark.parametrize("kind", SHARED)
def test_a_timer_that_blocks(run, kind):
    stall = assert_shared(run, kind)
    assert stall["loop"] == "qt"
    assert ": " in stall["callback"]["name"]


@pytest.mark.parametrize("kind", OWN)
def test_an_event_that_blocks(run, kind):
    assert_own(run, kind)


def test_many_short_events_are_a_burst(run):
    if run.truth["burst"]["longest_callback_ns"] >= 100_000_000:
        pytest.skip("the machine stopped a callback of half a millisecond")
    stall = run.stall_of("burst")
    assert stall["cause"] in admitted(stall, ("burst",))
    if is_by_the_host(stall):
        pytest.skip("others had the cores, and the evidence is of that")
    assert any("callbacks in one turn" in sentence for sentence in stall["evidence"]), stall["evidence"]
    assert any(": MetaCall" in sentence or ": Timer" in sentence for sentence in stall["evidence"])


def test_nothing_else_is_reported_but_what_the_host_did(run):
    assert [stall for stall in run.others() if not is_explained(stall)] == []


def test_the_other_binding(tmp_path):
    needs("PyQt6")
    run = WindowRun(tmp_path, "PyQt6", ("sleep", "json_body", "click", "paint", "after_an_inner_loop"))
    for kind in ("sleep", "json_body"):
        stall = assert_length(run, kind)
        assert (stall["culprit"]["function"], stall["culprit"]["line"]) == MARKS.find(f"culprit of {kind}")
    for kind in ("click", "paint", "after_an_inner_loop"):
        assert_own(run, kind)
