"""What a program noted of frames, input and idle work beside its flight file, as issues and figures."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from loopcanary.assembly.roots_sources import is_root, unquoted
from loopcanary.model import Clock, LagIssue, Session, Stall, TraceFigures
from loopcanary.model.search import IssueQuery, of_type
from loopcanary.model.trace_cells import CELL_BYTES, CELLS, TRACES
from loopcanary.protocols.kinds import issue_from_wire
from loopcanary.tracers.desk import Told
from loopcanary.tracers.frames import SceneSlice
from loopcanary.tracers.idle import RawIdleLag
from loopcanary.tracers.input import RawInputLag
from loopcanary.tracers.judging import Judging, Raw
from loopcanary.tracers.noted import NotedFigures, notes_in
from loopcanary.tracers.tracing import SETTLE_NS

if TYPE_CHECKING:
    from loopcanary.store import Store

_FLAGS = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)

_STEP_NS = 100_000_000
_RECALLED_MAX = 1_000


class NotedTraces:
    """The notes of one session, as issues and figures. Raises nothing."""

    def __init__(
        self,
        flight: str,
        session: Session,
        clock: Clock,
        *,
        known: TraceFigures,
        judged: Collection[str],
    ) -> None:
        """`flight`: path of the flight file; `known`, `judged`: figures, ids of issues that the store has."""
        self._path = flight + TRACES
        self._session = session
        self._judging = Judging(session, clock)
        self._figures = NotedFigures(known, clock)
        self._judged = judged
        self.failed: Callable[[str, Exception], object] = lambda *_: None
        """Gets what is wrong with a tracer's report."""
        self._is_first = known.is_empty
        self._last = 0
        self._read: tuple[int, int] | None = None
        self._ripening: list[tuple[int, int, Raw | Told]] = []
        """When each can be judged, its serial, and what it is."""
        self.lost = 0
        """Notes that were overwritten before they were read, or made no sense."""

    def look(self, now_ns: int) -> bool:
        """Reads what is new. Whether there was something."""
        content = self._content()
        if content is None:
            return False
        notes = notes_in(content, self._last)
        for serial, note in notes:
            if self._last or self._is_first:
                self.lost += serial - self._last - 1
            self.lost += note is None
            self._last = serial
            if note is not None:
                self._figures.add(note)
                raw = _issue_of(note)
                if raw is not None:
                    over_ns = raw.told_ns if isinstance(raw, Told) else raw.ended_ns
                    self._ripening.append((min(over_ns, now_ns) + SETTLE_NS, serial, raw))
        return bool(notes)

    def issues(self, now_ns: int | None, stalls: Sequence[Stall]) -> list[LagIssue]:
        """Those whose stalls can be known by now; None: all. `stalls`: the program's latest."""
        ripe = [one for one in self._ripening if now_ns is None or one[0] <= now_ns]
        self._ripening = [one for one in self._ripening if one not in ripe]
        found = [self._issue(raw, stalls, serial) for _, serial, raw in ripe]
        return [issue for issue in found if issue is not None and issue.id not in self._judged]

    def _issue(self, raw: Raw | Told, stalls: Sequence[Stall], serial: int) -> LagIssue | None:
        """None: it is not sound."""
        if not isinstance(raw, Told):
            return self._judging.judge(raw, stalls, serial)
        try:
            issue: Any = issue_from_wire(cast("Any", raw.issue))
            found = self._judging.complete(replace(raw, issue=issue), stalls, serial)
            return unquoted(issue, found) if is_root() else found
        except Exception as error:  # noqa: BLE001 - a third party's object, and its kind's functions
            self.failed(f"issue of tracer {raw.tracer}", error)
            return None

    def due_ns(self) -> int | None:
        """When the next one is ripe; None: none waits."""
        return min((ripe_ns for ripe_ns, *_ in self._ripening), default=None)

    def figures(self) -> TraceFigures:
        """What all notes add up to."""
        return self._figures.figures()

    def remove(self) -> None:
        """All was taken, and no more comes."""
        with suppress(OSError):
            os.unlink(self._path)  # noqa: PTH108 - a str, from a flight file's name

    def _content(self) -> bytes | None:
        """None: it is not there, is not ours, or has not changed."""
        try:
            descriptor = os.open(self._path, _FLAGS)
        except OSError:
            return None
        try:
            facts = os.fstat(descriptor)
            changed = (facts.st_ino, facts.st_mtime_ns)
            if not stat.S_ISREG(facts.st_mode) or facts.st_uid != os.geteuid() or changed == self._read:
                return None
            # The clock of a file goes in steps: it may change once more, and keep its time.
            self._read = changed if time.time_ns() - facts.st_mtime_ns > _STEP_NS else None
            return os.pread(descriptor, CELLS * CELL_BYTES, 0)
        except OSError:
            return None
        finally:
            os.close(descriptor)


def open_notes(flight: str, session: Session, clock: Clock, into: Store) -> NotedTraces:
    """Those beside this file, as far as the store does not have them. StoreError."""
    query = IssueQuery(session=session.id).others
    return NotedTraces(
        flight,
        session,
        clock,
        known=into.maintenance.traces(session.id),
        judged={issue.id for issue in into.reader.issues(query, _RECALLED_MAX)},
    )


def left_behind(
    into: Store, flight: str, session: Session, clock: Clock, stalls: Sequence[Stall]
) -> tuple[TraceFigures, list[LagIssue]]:
    """All figures of a session whose process is dead, and its issues that the store does not have. `stalls`:
    that it does not have either. StoreError."""
    notes = open_notes(flight, session, clock, into)
    notes.look(0)
    query = IssueQuery(session=session.id).stalls
    known = of_type(Stall, into.reader.issues(query, _RECALLED_MAX))
    figures = notes.figures()
    traces = replace(figures, input=(*figures.input, *session.traces.input))
    return traces, notes.issues(None, [*known, *stalls])


def are_there(flight: str) -> bool:
    """Whether a program has noted anything beside its flight file."""
    try:
        return os.stat(flight + TRACES).st_size > 0  # noqa: PTH116 - a str, and often
    except OSError:
        return False


def _issue_of(note: object) -> Raw | Told | None:
    """The note, if it becomes an issue. None: figures, or a slice without jank."""
    if isinstance(note, SceneSlice):
        return note if note.slice.figures.is_janky else None
    return note if isinstance(note, RawInputLag | RawIdleLag | Told) else None
