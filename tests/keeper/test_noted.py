"""Frames that a program notes beside its flight file, as its keeper deals with them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.building.evidence import BEGIN, MS, stall
from tests.keeper.test_life import NOW, SESSION, Program, S, add

from loopcanary.assembly.store import open_store
from loopcanary.model import Issue, TraceFigures
from loopcanary.model.issues.locks import LockLeak
from loopcanary.model.search import OTHERS
from loopcanary.model.stack_frame import StackFrame
from loopcanary.model.trace_cells import TRACES
from loopcanary.store import StoreError
from loopcanary.tracers.desk import Told
from loopcanary.tracers.frames import FrameListeners
from loopcanary.tracers.notes import Notes
from loopcanary.tracers.tracing import Tracing

pytestmark = pytest.mark.native


class Drawing(Program):
    """A program with a window: its frames are noted."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.tracing = Tracing(
            scene=lambda: "boss",
            listeners=FrameListeners([], lambda *_: None),
            failed=lambda part, error: self.complaints.append(f"{part}: {error}"),
            monotonic_ns=lambda: NOW,
            frames_begin=lambda: None,
        )
        self.tracing.keep(Notes(str(self.path), lambda: None))

    def show(self, *durations_ms: int, begin_ns: int = BEGIN) -> None:
        trace, now_ns = self.tracing.frames("qt"), begin_ns
        trace.frame_drawn(now_ns)
        for duration in durations_ms:
            now_ns += duration * MS
            trace.frame_drawn(now_ns)
        trace.close()

    @property
    def has_notes(self) -> bool:
        return Path(f"{self.path}{TRACES}").exists()

    def issues(self) -> list[Issue]:
        with closing(open_store(self.store)) as opened:
            return opened.reader.issues(OTHERS)

    def figures(self) -> TraceFigures:
        with closing(open_store(self.store)) as opened:
            return opened.maintenance.traces(SESSION.id)


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Drawing]:
    made = Drawing(tmp_path)
    made.write()
    yield made
    made.close()


def test_jank_rests_on_the_stalls_that_the_keeper_judged(program: Drawing):
    program.show(800)
    add(program, stall(serial=7))
    program.look(NOW)
    [jank] = program.issues()
    [found] = program.stored()
    assert (jank.id, jank.stalls) == ("s1-jank-1", (found.id,))  # type: ignore[attr-defined]
    assert program.figures().frames[0].figures.frames == 1


def test_the_next_keeper_reports_no_jank_again(program: Drawing):
    program.show(800)
    program.look(NOW)
    program.look(NOW + S)
    assert len([text for text in program.texts(NOW + S) if "jank" in text]) == 1
    program.next_keeper()
    program.show(17, begin_ns=NOW)
    program.look(NOW + 2 * S)
    program.look(NOW + 3 * S)
    assert [text for text in program.texts(NOW + 3 * S) if "jank" in text] == []
    assert len(program.issues()) == 1
    assert program.figures().frames[0].figures.frames == 2


def test_figures_that_could_not_be_stored_are_stored_later(program: Drawing, monkeypatch: pytest.MonkeyPatch):
    def full(*_: Any) -> None:
        raise StoreError("the disk is full")

    program.show(17)
    with monkeypatch.context() as broken:
        broken.setattr("loopcanary.store.Store.put_traces", full)
        program.look(NOW)
        program.life.finish(NOW)
        assert program.has_notes
    program.life.finish(NOW + S)
    assert not program.has_notes
    assert program.figures().frames[0].figures.frames == 1


def test_what_a_program_noted_until_it_was_killed_is_taken(program: Drawing):
    program.look(NOW)
    program.show(800)
    program.life.finish(NOW)
    assert [issue.id for issue in program.issues()] == ["s1-jank-1"]
    assert not program.has_notes


@pytest.mark.parametrize("is_root", [False, True])
def test_root_quotes_no_file_that_a_noted_issue_names(
    program: Drawing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_root: bool
):
    monkeypatch.setattr("loopcanary.assembly.keeper.noted.is_root", lambda: is_root)
    secret = tmp_path / "secret.py"
    secret.write_text("SECRET = 'sesame'\n")
    os.utime(secret, (0, 0))
    frame = StackFrame(function="f", qualname="f", file=str(secret), line=1, in_app=True)
    leak = LockLeak(began_wall_ns=time.time_ns(), duration_ns=S, acquired=(frame,))
    Path(f"{program.path}{TRACES}").unlink()
    told = Told(tracer="locks", issue=leak, thread="MainThread", scene=None, told_ns=NOW - 10 * S)
    Notes(str(program.path), lambda: None).reported(told)
    program.look(NOW)
    assert program.complaints == []
    [found] = program.issues()
    assert found.culprit.source == (None if is_root else "SECRET = 'sesame'")  # type: ignore[attr-defined]
