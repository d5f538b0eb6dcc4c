"""Long work of a lane before a stall, in the order of its begins, and what lay in between.

An entry carries the lane's sums as they were when it began. So what was too short to be recorded is counted
all the same: it is the difference of two entries, less the first of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from loopcanary.flight import format as layout
from loopcanary.flight.format import EndedKind, LaneState
from loopcanary.flight.header import Section, TickClock, bounded
from loopcanary.flight.lanes import read_lane, text_of
from loopcanary.flight.rings import whole_entries
from loopcanary.flight.source import ByteSource
from loopcanary.late_dataclass import dataclass
from loopcanary.model import LongWork, ShortWork, WorkKind

_RING_END: Final = layout.LONG_WORK_OFFSET + layout.LONG_WORK_COUNT * layout.LONG_WORK.size
_KINDS: Final = {EndedKind.CALLBACK: WorkKind.CALLBACK, EndedKind.TURN: WorkKind.TURN}


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneHistory:
    """What a lane did before a stall."""

    work: tuple[LongWork, ...] = ()
    from_ns: int | None = None
    """When the record begins; None: there is no record."""
    last: ShortWork | None = None
    """Between the last long work and the stall; None: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The stall that it was before."""

    lane_generation: int
    kind: WorkKind
    epoch: int
    """Epoch of the callback; for a turn its turn_epoch."""
    begin_ns: int


@dataclass(frozen=True, slots=True)
class _TickSums:
    """What a lane had done at a moment, in ticks."""

    at: int
    turns: int
    callbacks: int
    busy: int


@dataclass(frozen=True, slots=True)
class _Entry:
    sequence: int
    kind: WorkKind
    epoch: int
    end: int
    callbacks: int
    longest: int
    before: _TickSums
    name: str
    task: str

    @property
    def begin(self) -> int:
        return self.before.at

    @property
    def after(self) -> _TickSums:
        """What the lane had done when it was over. Its turn counts as one that is."""
        return _TickSums(
            self.end,
            self.before.turns + 1,
            self.before.callbacks + self.callbacks,
            self.before.busy + self.end - self.begin,
        )


def read_earlier(
    source: ByteSource, section: Section, index: int, clock: TickClock, stall: Subject
) -> LaneHistory:
    """What the lane did before the stall; nothing where the lane has another owner by now, or the file has no
    room for such a record."""
    if section.stride < _RING_END or not 0 <= index < section.count:
        return LaneHistory()
    lane_before = read_lane(source, section, index)
    at = section.at(index) + layout.LONG_WORK_OFFSET
    fields = list(whole_entries(source, at, layout.LONG_WORK, layout.LONG_WORK.size, layout.LONG_WORK_COUNT))
    lane = read_lane(source, section, index)
    owners = {lane_before["generation"], lane["generation"], stall.lane_generation}
    if len(owners) != 1 or lane["state"] == LaneState.FREE or not lane["long_limit"]:
        return LaneHistory()
    # Those of an earlier owner have numbers that this one has not reached.
    entries = [_entry(one) for one in fields if one["sequence"] <= lane["long_count"] and _is_sound(one)]
    return _earlier(entries, lane, clock, stall)


def _is_sound(fields: dict[str, Any]) -> bool:
    return fields["kind"] in _KINDS and bool(fields["begin"] <= fields["end"])


def _entry(fields: dict[str, Any]) -> _Entry:
    return _Entry(
        sequence=fields["sequence"],
        kind=_KINDS[fields["kind"]],
        epoch=fields["epoch"],
        end=fields["end"],
        callbacks=fields["callbacks"],
        longest=fields["longest_ticks"],
        before=_TickSums(
            fields["begin"], fields["turns_before"], fields["callbacks_before"], fields["busy_ticks_before"]
        ),
        name=text_of(fields["name"]),
        task=text_of(fields["task"]),
    )


def _earlier(entries: list[_Entry], lane: dict[str, Any], clock: TickClock, stall: Subject) -> LaneHistory:
    own = _own(entries, lane, clock, stall)
    begin = own.before if own is not None else _sums_now(lane, stall)
    if begin is None:
        over = [one for one in entries if clock.instant_ns(one.end) <= stall.begin_ns]
        later_ns = 0
    else:
        # By the same clock's ticks: what ended right before the stall did not end in it.
        over = [one for one in entries if one.end <= begin.at and one is not own]
        later_ns = stall.begin_ns - clock.instant_ns(begin.at)
    tell = _Telling(clock, later_ns, frozenset(entry.sequence for entry in entries))
    opened_ns = bounded(lane["opened_ns"])
    work = tuple(tell.all(over, opened_ns))
    until = own.sequence if own is not None else lane["long_count"] + 1
    is_whole = lane["long_count"] <= layout.LONG_WORK_COUNT
    from_ns = opened_ns if is_whole or not entries else tell.instant_ns(min(one.begin for one in entries))
    return LaneHistory(
        work=work,
        from_ns=min(from_ns, stall.begin_ns),
        last=None if begin is None else tell.since_last(begin, until, opened_ns),
    )


class _Telling:
    """Entries as long work, one after the other, with what lay before each."""

    def __init__(self, clock: TickClock, later_ns: int, known: frozenset[int]) -> None:
        """`later_ns`: how much later than by `clock` it was; `known`: numbers of all that could be read."""
        self._clock = clock
        self._later_ns = later_ns
        self._known = known
        self._outer: _Entry | None = None
        self._inner: _Entry | None = None
        self._before_outer = 0
        """Number of the one before `_outer`."""

    def instant_ns(self, ticks: int) -> int:
        return bounded(self._clock.instant_ns(ticks) + self._later_ns)

    def all(self, entries: list[_Entry], opened_ns: int) -> Iterator[LongWork]:
        for entry in sorted(entries, key=lambda entry: (entry.begin, -entry.end, entry.sequence)):
            outer = self._outer
            if outer is not None and outer.kind is WorkKind.TURN and entry.end <= outer.end:
                # Before the first of a turn's callbacks there is what the turn did from its begin on.
                since = outer.before if self._inner is None else self._inner.after
                first = self._before_outer if self._inner is None else self._inner.sequence
                self._inner = entry
            else:
                since = self._opening(entry.before, opened_ns) if outer is None else outer.after
                first = 0 if outer is None else outer.sequence
                self._outer, self._inner, self._before_outer = entry, None, first
            yield self._long_work(entry, self._short(since, entry.before, first, entry.sequence))

    def since_last(self, until: _TickSums, number: int, opened_ns: int) -> ShortWork | None:
        """Between the last one and a moment, before which all numbers below `number` were given."""
        outer = self._outer
        since = self._opening(until, opened_ns) if outer is None else outer.after
        return self._short(since, until, 0 if outer is None else outer.sequence, number)

    def _opening(self, sums: _TickSums, opened_ns: int) -> _TickSums:
        """What the lane had done when it was opened, as long before `sums` as it was by the clock."""
        past_ns = max(0, self.instant_ns(sums.at) - opened_ns)
        rate = self._clock.rate_q32
        return _TickSums(sums.at - ((past_ns << 32) // rate if rate else 0), 0, 0, 0)

    def _short(self, since: _TickSums, until: _TickSums, first: int, last: int) -> ShortWork | None:
        """None where something between these numbers could not be read: it would be counted as short."""
        if sum(first < number < last for number in self._known) < last - first - 1:
            return None
        busy = max(0, until.busy - since.busy)
        return ShortWork(
            turns=bounded(until.turns - since.turns),
            callbacks=bounded(until.callbacks - since.callbacks),
            busy_ns=self._clock.duration_ns(busy),
            idle_ns=self._clock.duration_ns(max(0, until.at - since.at - busy)),
        )

    def _long_work(self, entry: _Entry, short: ShortWork | None) -> LongWork:
        begin_ns = self.instant_ns(entry.begin)
        return LongWork(
            kind=entry.kind,
            begin_ns=begin_ns,
            end_ns=bounded(begin_ns + self._clock.duration_ns(entry.end - entry.begin)),
            name=entry.name or None,
            task=entry.task or None,
            callbacks=bounded(entry.callbacks),
            longest_ns=self._clock.duration_ns(entry.longest),
            short=short,
        )


def _own(entries: list[_Entry], lane: dict[str, Any], clock: TickClock, stall: Subject) -> _Entry | None:
    """The stall's own record; None: it goes on. A turn has several records where stalled callbacks divide it:
    the one that began when the stall did counts."""
    alike: list[tuple[_TickSums, _Entry | None]] = [
        (one.before, one) for one in entries if _is_of(one, stall)
    ]
    running = _sums_now(lane, stall)
    if running is not None:
        alike.append((running, None))
    nearest = min(alike, key=lambda one: abs(clock.instant_ns(one[0].at) - stall.begin_ns), default=None)
    return None if nearest is None else nearest[1]


def _is_of(entry: _Entry, stall: Subject) -> bool:
    return entry.kind is stall.kind and entry.epoch == stall.epoch


def _sums_now(lane: dict[str, Any], stall: Subject) -> _TickSums | None:
    """At the begin of a stall that goes on; None where the lane has gone on to something else."""
    if stall.kind is WorkKind.TURN:
        if lane["turn_epoch"] != stall.epoch:
            return None
        begin = lane["turn_rest"] or lane["turn_begin"]
        busy = lane["busy_ticks"] + max(0, begin - lane["turn_begin"])
        return _TickSums(begin, lane["turns"], lane["callbacks"], busy)
    if lane["epoch"] != stall.epoch:
        return None
    busy = lane["busy_ticks"] + max(0, lane["begin"] - lane["turn_begin"])
    return _TickSums(lane["begin"], lane["turns"], lane["callbacks"] + lane["turn_callbacks"], busy)
