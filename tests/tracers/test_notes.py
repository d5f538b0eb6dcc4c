"""Frames, input and idle work noted beside a flight file, and read by another process."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.building.stalls import SESSION

from loopcanary.assembly.keeper.noted import NotedTraces
from loopcanary.model import Clock, InputFigures, TraceFigures
from loopcanary.model.trace_cells import CELL_BYTES, CELLS, TRACES, cell_of, cells_in, place_of
from loopcanary.tracers.frames import FrameListeners
from loopcanary.tracers.noted import NotedFigures, notes_in
from loopcanary.tracers.notes import Notes
from loopcanary.tracers.tracing import SETTLE_NS, Tracing

MS = 1_000_000
S = 1_000 * MS
CLOCK = Clock(monotonic_ns=0, wall_ns=1_700_000_000 * S)


class Program:
    """One that notes what it sees."""

    def __init__(self, flight: str) -> None:
        self.flight = flight
        self.asked = 0
        self.failures: list[Any] = []
        self.notes = Notes(flight, self.ask)
        self.tracing = Tracing(
            scene=lambda: None,
            listeners=FrameListeners([], lambda *_: None),
            failed=lambda *what: self.failures.append(what),
            monotonic_ns=lambda: 0,
            frames_begin=lambda: None,
        )
        self.tracing.keep(self.notes)

    def ask(self) -> None:
        self.asked += 1

    def show(self, *durations_ms: int, begin_ns: int = 0) -> int:
        trace, now = self.tracing.frames("qt"), begin_ns
        trace.frame_drawn(now)
        for duration in durations_ms:
            now += duration * MS
            trace.frame_drawn(now)
        trace.close()
        return now

    def content(self) -> bytes:
        return Path(self.flight + TRACES).read_bytes()

    def keeper(self, known: TraceFigures | None = None, judged: Any = ()) -> NotedTraces:
        return NotedTraces(self.flight, SESSION, CLOCK, known=known or TraceFigures(), judged=judged)


@pytest.fixture
def program(tmp_path: Any) -> Any:
    made = Program(str(tmp_path / "s.flight"))
    yield made
    assert made.failures == []


def test_the_keeper_has_the_figures_that_the_program_has(program):
    program.show(*[20] * 700, 400, *[17] * 500)
    program.tracing.input("qt").handled("click", 0, 5 * MS, 10 * MS)
    program.tracing.idle("tk").ran("thumbs", 0, 7 * MS)
    program.tracing.end()
    keeper = program.keeper()
    keeper.look(0)
    own = program.tracing.figures()
    noted = keeper.figures()
    assert [scene.figures for scene in noted.frames] == [scene.figures for scene in own.frames]
    assert sum(part.figures.frames for part in noted.frames[0].slices) == own.frames[0].figures.frames
    assert (noted.input, noted.idle) == (own.input, own.idle)


def test_jank_and_lags_are_issues_once_their_stalls_can_be_known(program):
    end = program.show(*[20] * 50, 800)
    program.tracing.input("qt").handled("click", 0, 300 * MS, 340 * MS)
    program.tracing.idle("tk").spun("poll", 0, 1_500 * MS, 20_000)
    keeper = program.keeper()
    keeper.look(end)
    due = keeper.due_ns()
    assert due is not None
    assert due <= end + SETTLE_NS
    assert keeper.issues(0, []) == []
    found = keeper.issues(end + SETTLE_NS, [])
    assert sorted(issue.kind.value for issue in found) == ["idle", "input", "jank"]
    assert keeper.issues(None, []) == []


def test_what_is_worth_an_issue_calls_the_keeper(program):
    program.show(*[16] * 400)
    assert program.asked == 0
    program.show(800)
    assert program.asked == 1


def test_many_good_slices_call_the_keeper_in_time(program):
    program.show(*[16] * 400 * (CELLS // 2))
    assert program.asked == 1


def test_the_next_keeper_judges_nothing_twice(program):
    end = program.show(*[20] * 50, 800)
    first = program.keeper()
    first.look(end)
    [jank] = first.issues(None, [])
    second = program.keeper(first.figures(), {jank.id})
    program.show(*[16] * 10, begin_ns=end + S)
    second.look(end)
    assert second.issues(None, []) == []
    assert second.figures().frames[0].figures.frames == 51 + 10
    assert second.lost == 0


def test_notes_that_were_overwritten_are_counted(program):
    for at in range(CELLS + 10):
        program.show(16, begin_ns=at * S)
    keeper = program.keeper()
    keeper.look(0)
    assert keeper.lost == 10
    assert keeper.figures().frames[0].figures.frames == CELLS


def test_a_long_story_of_an_event_is_cut_not_dropped(program):
    trace = program.tracing.input("qt")
    for at in range(16):
        trace.handled("€" * 120, 0, at, at + 1)
    trace.handled("click", 0, 20, 300 * MS)
    [late] = [note for _, note in notes_in(program.content(), 0) if hasattr(note, "before")]
    assert late.name == "click"
    assert 0 < len(late.before) < 16
    assert late.before[-1].begin_ns == 15


def test_a_forked_child_of_c_code_notes_nothing(program, monkeypatch):
    monkeypatch.setattr(os, "getpid", lambda: -1)
    program.show(800)
    assert program.content() == b""


def test_another_reader_of_the_file_trusts_its_owner_only(program, monkeypatch):
    program.show(800)
    monkeypatch.setattr(os, "geteuid", lambda: 12_345)
    assert not program.keeper().look(0)


def test_a_cell_that_is_being_written_counts_as_none():
    cell = cell_of(7, b'{"what": "x"}')
    content = bytearray(CELLS * CELL_BYTES)
    content[place_of(7) : place_of(7) + len(cell) - 1] = cell[:-1]
    assert list(cells_in(bytes(content), 0)) == []
    content[place_of(7) : place_of(7) + len(cell)] = cell
    assert [serial for serial, _ in cells_in(bytes(content), 0)] == [7]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=8), inner, max_size=5),
    max_leaves=30,
)
KINDS = ["SceneSlice", "RawInputLag", "RawIdleLag", "InputFigures", "IdleFigures", "Told"]
NUMBERS = st.lists(st.integers(-1, 1 << 62) | st.lists(st.integers(0, 9), max_size=6), max_size=10)
RECORDS = st.fixed_dictionaries(
    {"what": st.sampled_from(KINDS)},
    optional={"values": st.lists(JSON | NUMBERS, max_size=11), "issue": JSON},
)


@given(RECORDS)
def test_no_record_breaks_the_reader(record):
    text = json.dumps(record).encode()[: CELL_BYTES - 16]
    content = cell_of(1, text)
    [(_, note)] = notes_in(content, 0)
    NotedFigures(TraceFigures(), CLOCK).add(note)


@given(st.binary(max_size=3 * CELL_BYTES))
def test_no_bytes_break_the_reader(content):
    notes_in(content, 0)


def test_sums_of_events_are_the_latest(program):
    trace = program.tracing.input("qt")
    for at in range(2_048):
        trace.handled("click", 0, at, at + 1)
    sums = [note for _, note in notes_in(program.content(), 0)]
    assert all(isinstance(one, InputFigures) for one in sums)
    keeper = program.keeper()
    keeper.look(0)
    assert [one.events for one in keeper.figures().input] == [2_048]
