"""How long was watched, and when: what a rate is a rate of."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property

from loopcanary.late_dataclass import dataclass
from loopcanary.model.search import IssueQuery, SessionMark
from loopcanary.model.units import format_duration

HOUR_NS = 3_600_000_000_000
_EVER_NS = 1 << 62


@dataclass(frozen=True)
class Watched:
    """Spans of wall time in which processes were watched; those of several processes add up."""

    spans: tuple[tuple[int, int], ...]

    @classmethod
    def by(
        cls,
        sessions: Iterable[SessionMark],
        now_wall_ns: int,
        since_wall_ns: int | None = None,
        until_wall_ns: int | None = None,
    ) -> Watched:
        """The time of these sessions between two moments. One that runs is watched until now."""
        low = -_EVER_NS if since_wall_ns is None else since_wall_ns
        high = _EVER_NS if until_wall_ns is None else until_wall_ns
        spans = [
            (
                max(session.started_wall_ns, low),
                min(now_wall_ns if session.ended_wall_ns is None else session.ended_wall_ns, high),
            )
            for session in sessions
        ]
        return cls(tuple(sorted((begin, end) for begin, end in spans if begin < end)))

    @cached_property
    def total_ns(self) -> int:
        """The sum of all spans."""
        return sum(end - begin for begin, end in self.spans)

    @cached_property
    def covered_ns(self) -> int:
        """How much time the spans cover: what several processes share counts once."""
        covered, until = 0, -_EVER_NS
        for begin, end in self.spans:
            covered += max(0, end - max(begin, until))
            until = max(until, end)
        return covered

    @property
    def words(self) -> str:
        """`9.1 s`; `9.1 s (27.8 s in 3 processes)` where processes ran at the same time."""
        covered = format_duration(self.covered_ns)
        total = format_duration(self.total_ns)
        return covered if covered == total else f"{covered} ({total} in {len(self.spans):,} processes)"

    @property
    def hours(self) -> float:
        """The sum of all spans in hours."""
        return self.total_ns / HOUR_NS

    def slices(self, number: int) -> Slices:
        """This time in so many slices, one after the other, in each of which as much was watched."""
        return Slices(self._moments([self.total_ns * k / number for k in range(1, number)]))

    def _moments(self, amounts: list[float]) -> tuple[float, ...]:
        """When so much had been watched; `amounts` ascend."""
        edges = sorted([(begin, 1) for begin, _ in self.spans] + [(end, -1) for _, end in self.spans])
        moments: list[float] = []
        passed, running, at = 0.0, 0, 0
        for moment, step in edges:
            reached = passed + running * (moment - at)
            while len(moments) < len(amounts) and running and amounts[len(moments)] <= reached:
                moments.append(at + (amounts[len(moments)] - passed) / running)
            passed, running, at = reached, running + step, moment
        return tuple(moments)


NEVER = Watched(())


@dataclass(frozen=True, slots=True)
class Slices:
    """Watched time that was cut at these moments."""

    cuts: tuple[float, ...]

    def sums(self, marks: Iterable[tuple[int, float]]) -> list[float]:
        """The sum of the values in each slice, of (wall time, value) marks."""
        found = [0.0] * (len(self.cuts) + 1)
        for moment, value in marks:
            found[bisect_right(self.cuts, moment)] += value
        return found


class ProgramTimes:
    """The watched time of each program, by its sessions that a query finds."""

    def __init__(self, marks: Iterable[SessionMark], query: IssueQuery, now_wall_ns: int) -> None:
        self._query = query
        self._now_wall_ns = now_wall_ns
        self.program: dict[str, str] = {}
        """By session."""
        self._sessions: dict[str, list[SessionMark]] = defaultdict(list)
        for mark in marks:
            self.program[mark.id] = mark.name
            self._sessions[mark.name].append(mark)
        self._known: dict[frozenset[str], Watched] = {}

    def watched(self, programs: Iterable[str] | None = None) -> Watched:
        """The time of all sessions of these programs; None: of all programs."""
        names = frozenset(self._sessions if programs is None else programs)
        if names not in self._known:
            marks = [mark for name in names for mark in self._sessions.get(name, ())]
            self._known[names] = Watched.by(
                marks, self._now_wall_ns, self._query.since_wall_ns, self._query.until_wall_ns
            )
        return self._known[names]
