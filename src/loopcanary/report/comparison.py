"""Two sets of runs against each other: which groups are new, gone, worse, better."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from loopcanary.model.search import StallQuery
from loopcanary.report.rates import Amount, Interval, amount, interval, ratio
from loopcanary.report.watched import Watched

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from loopcanary.model import Cause, Culprit
    from loopcanary.model.search import SessionMark, StallGroup, StallMark
    from loopcanary.report.model import StallSource

_S = 1_000_000_000
_LOAD_SESSIONS = 50


class Change(Enum):
    """What became of a group."""

    NEW = "new"
    WORSE = "worse"
    BETTER = "better"
    GONE = "gone"
    UNCHANGED = "unchanged"
    """No change that chance alone would not make as well."""


_RANKS = {Change.WORSE: 1, Change.GONE: 3, Change.BETTER: 4, Change.UNCHANGED: 5}


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two sets of runs: sessions of a store, of some time, of some version."""

    source: StallSource
    query: StallQuery
    """By time only."""
    label: str
    """For people: `before 2026-11-21 05:00`, `version 1.2`."""
    version: str | None = None
    program: str | None = None
    """Only sessions of this name; None: of all programs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What there was of a group on one side."""

    stalls: Amount
    """Their number."""
    time: Amount
    """Their seconds."""

    @property
    def count(self) -> int:
        """The number of stalls."""
        return self.stalls.count


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A group on both sides. Change is judged by stalled seconds per watched hour."""

    fingerprint: str
    title: str
    cause: Cause
    culprit: Culprit | None
    """Title, cause and culprit are those of the second side, where it has the group."""
    change: Change
    is_sure: bool
    """Of new and gone: the side without it was watched long enough for that to mean something."""
    before: Seen
    after: Seen
    before_range: Interval
    """Of stalled seconds per hour, as `after_range`."""
    after_range: Interval
    ratio: Interval
    """Of the second side's stalled seconds per hour, in units of the first's."""

    @property
    def difference(self) -> float:
        """In stalled seconds per hour."""
        return self.after.time.per_hour - self.before.time.per_hour


@dataclass(frozen=True, slots=True, kw_only=True)
class SideSums:
    """One side as a whole."""

    label: str
    sessions: int
    hours: float
    stalls: int
    stalled_s: float
    callbacks_per_s: float | None
    """The load, of the latest sessions whose loops' figures are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Groups: what is worse first, and of one change those that differ by most seconds an hour."""

    generated_wall_ns: int
    before: SideSums
    after: SideSums
    groups: tuple[Compared, ...]
    counts: Mapping[Change, int]

    @property
    def is_worse(self) -> bool:
        """Whether anything is surely new or worse."""
        return any(
            one.change is Change.WORSE or (one.change is Change.NEW and one.is_sure) for one in self.groups
        )


def compare(before: Side, after: Side, *, now_wall_ns: int) -> Comparison:
    """Every group of either side."""
    first, second = _Runs(before, now_wall_ns), _Runs(after, now_wall_ns)
    fingerprints = dict.fromkeys([*second.marks, *first.marks])
    groups = [_compared(fingerprint, first, second) for fingerprint in fingerprints]
    groups.sort(key=lambda one: (_rank(one), -abs(one.difference), one.fingerprint))
    return Comparison(
        generated_wall_ns=now_wall_ns,
        before=first.sums(),
        after=second.sums(),
        groups=tuple(groups),
        counts={change: sum(one.change is change for one in groups) for change in Change},
    )


class _Runs:
    """The runs of one side: their time, program by program, and the stalls in it."""

    def __init__(self, side: Side, now_wall_ns: int) -> None:
        self.side = side
        self._now_wall_ns = now_wall_ns
        sessions = [
            mark
            for mark in side.source.session_marks(side.query)
            if (side.version is None or mark.version == side.version)
            and (side.program is None or mark.name == side.program)
        ]
        self._program = {mark.id: mark.name for mark in sessions}
        self._sessions: dict[str, list[SessionMark]] = defaultdict(list)
        for session in sessions:
            self._sessions[session.name].append(session)
        self.marks: dict[str, list[StallMark]] = defaultdict(list)
        for mark in side.source.marks(side.query):
            if mark.session in self._program:
                self.marks[mark.fingerprint].append(mark)

    def programs_of(self, fingerprint: str) -> set[str]:
        """The programs that had the group."""
        return {self._program[mark.session] for mark in self.marks.get(fingerprint, ())}

    def watched(self, programs: Iterable[str] | None = None) -> Watched:
        """The time of these programs; None: of all."""
        names = self._sessions if programs is None else programs
        sessions = [session for name in names for session in self._sessions.get(name, ())]
        query = self.side.query
        return Watched.by(sessions, self._now_wall_ns, query.since_wall_ns, query.until_wall_ns)

    def seen(self, fingerprint: str, watched: Watched) -> Seen:
        """What there was of a group in that time."""
        marks = self.marks.get(fingerprint, ())
        return Seen(
            stalls=amount([(mark.began_wall_ns, 1.0) for mark in marks], watched),
            time=amount([(mark.began_wall_ns, mark.duration_ns / _S) for mark in marks], watched),
        )

    def group(self, fingerprint: str) -> StallGroup:
        """The group, which is there, as the store describes it. Its sums are those of all versions."""
        query = StallQuery(
            fingerprint=fingerprint,
            since_wall_ns=self.side.query.since_wall_ns,
            until_wall_ns=self.side.query.until_wall_ns,
        )
        [group] = self.side.source.groups(query, 1)
        return group

    def sums(self) -> SideSums:
        """All of it."""
        marks = [mark for found in self.marks.values() for mark in found]
        return SideSums(
            label=self.side.label,
            sessions=len(self._program),
            hours=self.watched().hours,
            stalls=len(marks),
            stalled_s=sum(mark.duration_ns for mark in marks) / _S,
            callbacks_per_s=self._load(),
        )

    def _load(self) -> float | None:
        sessions = self.side.source.sessions(self.side.query, _LOAD_SESSIONS)
        loops = [loop for session in sessions if session.id in self._program for loop in session.loops]
        window_ns = sum(loop.window_ns for loop in loops)
        return sum(loop.callbacks for loop in loops) / (window_ns / _S) if window_ns else None


def _compared(fingerprint: str, first: _Runs, second: _Runs) -> Compared:
    group = second.group(fingerprint) if fingerprint in second.marks else first.group(fingerprint)
    # Sessions of a store that was written before their programs were kept have none, and may be any.
    programs = {*first.programs_of(fingerprint), *second.programs_of(fingerprint), ""}
    before = first.seen(fingerprint, first.watched(programs))
    after = second.seen(fingerprint, second.watched(programs))
    between = ratio(before.time, after.time)
    return Compared(
        fingerprint=fingerprint,
        title=group.title,
        cause=group.cause,
        culprit=group.culprit,
        change=_change(before, after, between),
        is_sure=(not before.count and between.low > 1) or (not after.count and between.high < 1),
        before=before,
        after=after,
        before_range=interval(before.time),
        after_range=interval(after.time),
        ratio=between,
    )


def _rank(one: Compared) -> int:
    """What is surely worse comes first."""
    if one.change is Change.NEW:
        return 0 if one.is_sure else 2
    return _RANKS[one.change]


def _change(before: Seen, after: Seen, between: Interval) -> Change:
    if not before.count:
        return Change.NEW
    if not after.count:
        return Change.GONE
    if between.low > 1:
        return Change.WORSE
    return Change.BETTER if between.high < 1 else Change.UNCHANGED
