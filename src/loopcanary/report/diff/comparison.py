"""Two sets of runs against each other: which groups are new, gone, worse, better."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum

from loopcanary.late_dataclass import dataclass
from loopcanary.model import Cause, Culprit, Holder, IssueKind, Startup
from loopcanary.model.search import IssueGroup, IssueQuery, of_type
from loopcanary.protocols.stores import IssueStore
from loopcanary.report.diff.starts import ComparedStart, compare_starts
from loopcanary.report.figures.rates import Amount, Interval, amount, interval, ratio
from loopcanary.report.figures.watched import ProgramTimes, Watched

_S = 1_000_000_000
_LOAD_SESSIONS = 50
_STARTS = 200
_ASKED_BY_NAME_MAX = 500
"""The stalls of more sessions are read for all of them."""


class Change(Enum):
    """The change of a group."""

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

    source: IssueStore
    query: IssueQuery
    """The query, by time only."""
    label: str
    """`before 2026-11-21 05:00`, `version 1.2`."""
    version: str | None = None
    program: str | None = None
    """None: the sessions of all programs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A group on both sides. Change is judged by stalled seconds per watched hour."""

    fingerprint: str
    title: str
    cause: Cause
    culprit: Culprit | None
    holder: Holder | None
    """Title, cause, culprit and holder are those of the second side, if it has the group."""
    change: Change
    is_sure: bool
    """Whether the side without a new or gone group was watched long enough."""
    before: Amount
    after: Amount
    """The seconds of its stalls."""

    @property
    def before_range(self) -> Interval:
        """The interval of stalled seconds per hour."""
        return interval(self.before)

    @property
    def after_range(self) -> Interval:
        return interval(self.after)

    @property
    def ratio(self) -> Interval:
        """The interval of the second side's stalled seconds per hour, in units of the first's."""
        return ratio(self.before, self.after)


@dataclass(frozen=True, slots=True, kw_only=True)
class SideSums:
    label: str
    sessions: int
    hours: float
    stalls: int
    stalled_s: float
    callbacks_per_s: float | None
    """The load, in the latest sessions whose loops' figures are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Groups: what is worse first, and of one change those that differ by most seconds an hour. There may be
    more: `counts` are of all."""

    generated_wall_ns: int
    before: SideSums
    after: SideSums
    groups: tuple[Compared, ...]
    counts: Mapping[Change, int]
    starts: tuple[ComparedStart, ...] = ()
    """The starts of programs that recorded some on both sides."""

    @property
    def is_worse(self) -> bool:
        """Whether anything is surely new or worse."""
        return any(
            one.change is Change.WORSE or (one.change is Change.NEW and one.is_sure) for one in self.groups
        )


def compare(before: Side, after: Side, *, now_wall_ns: int, limit: int = 0) -> Comparison:
    """Compares every group of either side, and describes the `limit` worst of them; 0: all."""
    first, second = _Runs(before, now_wall_ns), _Runs(after, now_wall_ns)
    fingerprints = dict.fromkeys([*second.stalls, *first.stalls])
    judged = [_judged(fingerprint, first, second) for fingerprint in fingerprints]
    judged.sort(key=lambda one: (_rank(one), -abs(one.difference), one.fingerprint))
    return Comparison(
        generated_wall_ns=now_wall_ns,
        before=first.sums(),
        after=second.sums(),
        groups=_described(judged[: limit or None], first, second),
        counts={change: sum(one.change is change for one in judged) for change in Change},
        starts=compare_starts(first.starts(), second.starts()),
    )


class _Runs:
    """The runs of one side: their time, program by program, and the stalls in it."""

    def __init__(self, side: Side, now_wall_ns: int) -> None:
        self.side = side
        sessions = [
            mark
            for mark in side.source.session_marks(side.query)
            if (side.version is None or mark.version == side.version)
            and (side.program is None or mark.name == side.program)
        ]
        self.times = ProgramTimes(sessions, side.query, now_wall_ns)
        self._program = self.times.program
        self.stalls: dict[str, list[tuple[int, int]]] = defaultdict(list)
        """(began_wall_ns, duration_ns) by fingerprint."""
        self._programs: dict[str, set[str]] = defaultdict(set)
        asked = list(self._program) if len(self._program) <= _ASKED_BY_NAME_MAX else None
        times = side.source.times(side.query.stalls, asked)
        for fingerprint, session_id, began_wall_ns, duration_ns in times:
            program = self._program.get(session_id)
            if program is not None:
                self.stalls[fingerprint].append((began_wall_ns, duration_ns))
                self._programs[fingerprint].add(program)

    def programs_of(self, fingerprint: str) -> set[str]:
        return self._programs.get(fingerprint, set())

    def seen(self, fingerprint: str, watched: Watched) -> Amount:
        """The seconds of a group's stalls in that time."""
        stalls = self.stalls.get(fingerprint, ())
        return amount([(began_ns, duration_ns / _S) for began_ns, duration_ns in stalls], watched)

    def groups(self, fingerprints: Sequence[str]) -> dict[str, IssueGroup]:
        """The groups that the store has, with the sums of all versions."""
        query = IssueQuery(
            since_wall_ns=self.side.query.since_wall_ns, until_wall_ns=self.side.query.until_wall_ns
        )
        found: dict[str, IssueGroup] = {}
        for begin in range(0, len(fingerprints), _ASKED_BY_NAME_MAX):
            some = fingerprints[begin : begin + _ASKED_BY_NAME_MAX]
            found |= {group.fingerprint: group for group in self.side.source.groups(query.stalls, 0, some)}
        return found

    def starts(self) -> list[Startup]:
        query = replace(self.side.query, kind=IssueKind.STARTUP)
        found = of_type(Startup, self.side.source.issues(query, _STARTS))
        return [start for start in found if start.session in self._program]

    def sums(self) -> SideSums:
        durations = [duration_ns for found in self.stalls.values() for _, duration_ns in found]
        return SideSums(
            label=self.side.label,
            sessions=len(self._program),
            hours=self.times.watched().hours,
            stalls=len(durations),
            stalled_s=sum(durations) / _S,
            callbacks_per_s=self._load(),
        )

    def _load(self) -> float | None:
        sessions = self.side.source.sessions(self.side.query, _LOAD_SESSIONS)
        loops = [loop for session in sessions if session.id in self._program for loop in session.loops]
        window_ns = sum(loop.window_ns for loop in loops)
        return sum(loop.callbacks for loop in loops) / (window_ns / _S) if window_ns else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """A group on both sides, not described yet."""

    fingerprint: str
    change: Change
    is_sure: bool
    before: Amount
    after: Amount

    @property
    def difference(self) -> float:
        return self.after.per_hour - self.before.per_hour


def _judged(fingerprint: str, first: _Runs, second: _Runs) -> _Judged:
    # Sessions of a store that was written before their programs were kept have none, and may be any.
    programs = {*first.programs_of(fingerprint), *second.programs_of(fingerprint), ""}
    before = first.seen(fingerprint, first.times.watched(programs))
    after = second.seen(fingerprint, second.times.watched(programs))
    between = ratio(before, after)
    more, less = between.low > 1, between.high < 1
    return _Judged(
        fingerprint=fingerprint,
        change=_change(before, after, more=more, less=less),
        is_sure=(not before.count and more) or (not after.count and less),
        before=before,
        after=after,
    )


def _described(judged: Sequence[_Judged], first: _Runs, second: _Runs) -> tuple[Compared, ...]:
    names = [one.fingerprint for one in judged]
    groups = second.groups([name for name in names if name in second.stalls])
    groups |= first.groups([name for name in names if name not in groups])
    return tuple(
        Compared(
            fingerprint=one.fingerprint,
            title=group.title,
            cause=group.cause,
            culprit=group.culprit,
            holder=group.holder,
            change=one.change,
            is_sure=one.is_sure,
            before=one.before,
            after=one.after,
        )
        for one in judged
        # One that was deleted meanwhile is not there any more.
        if (group := groups.get(one.fingerprint)) is not None
    )


def _rank(one: _Judged) -> int:
    """Puts first what is surely worse."""
    if one.change is Change.NEW:
        return 0 if one.is_sure else 2
    return _RANKS[one.change]


def _change(before: Amount, after: Amount, *, more: bool, less: bool) -> Change:
    if not before.count:
        return Change.NEW
    if not after.count:
        return Change.GONE
    if more:
        return Change.WORSE
    return Change.BETTER if less else Change.UNCHANGED
