"""A lane: what a watched thread reports to the portable engine, in plain attributes.

The thread's side (`begin`, `end`) takes no lock and never waits; a lane belongs to one thread. The watchdog
reads it under the GIL. Time is an argument throughout.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from loopcanary.model.evidence import SLICE_NS, CallbackNames, LaneTotals, congested_slices
from loopcanary.model.timeline import LongWork, ShortWork, WorkKind
from loopcanary.model.waiting import Contributor
from loopcanary.portable.names import names_of_work

THREAD = "thread"
"""The kind of lanes for named work on threads without a loop."""
_ENDED_MAX = 64
_TALLY_MAX = 32
_SUB_BITS = 4
_MIN_BITS = 10
"""Buckets as in the native engine: 16 an octave, all below 1.024 us in the first."""
_FIRST_BUCKET_NS = 1 << _MIN_BITS


class Ongoing(NamedTuple):
    """A piece of work that is going on: which, and since when."""

    epoch: int
    begin_ns: int


class Ended(NamedTuple):
    """A stall as its own thread saw it end: exact, and there even if the watchdog never ran."""

    epoch: int
    begin_ns: int
    end_ns: int
    cpu_ns: int
    """CPU time of the thread at the end, since the thread's start."""
    scene: str | None
    work: CallbackNames | None
    allowance_ns: int
    tally: WorkTally
    """Named pieces of work that the turn consisted of."""
    earlier: TurnHistory
    """What there was before."""
    callbacks: int
    longest_ns: int
    """The longest of the named pieces of work."""


class WorkTally:
    """Pieces of work of one turn by name. Own thread; read when the turn is over."""

    __slots__ = ("by_name", "dropped")

    def __init__(self) -> None:
        self.by_name: dict[str, list[int]] = {}
        """[count, sum, longest]"""
        self.dropped = 0

    def add(self, name: str, duration_ns: int) -> None:
        known = self.by_name.get(name)
        if known is None:
            if len(self.by_name) >= _TALLY_MAX:
                self.dropped += 1
                return
            known = self.by_name[name] = [0, 0, 0]
        known[0] += 1
        known[1] += duration_ns
        known[2] = max(known[2], duration_ns)

    def contributors(self) -> tuple[Contributor, ...]:
        """Most time first."""
        found = (
            Contributor(name=name, count=count, total_ns=total, longest_ns=longest)
            for name, (count, total, longest) in self.by_name.items()
        )
        return tuple(sorted(found, key=lambda one: (-one.total_ns, one.name)))


class LaneIdentity(NamedTuple):
    """What a lane is of. `by_ticks`: its busy times come from a ticker, so turns cannot be counted."""

    number: int
    tid: int
    ident: int
    loop_kind: str
    thread_name: str
    by_ticks: bool = False


class Lane:
    """The words of one watched thread. An odd epoch: it works."""

    __slots__ = (
        "_allowance_epoch",
        "_allowance_ns",
        "_buckets",
        "_busy_ns",
        "_busy_ns_squared",
        "_callbacks_before",
        "_long",
        "_longest_ns",
        "_longest_work",
        "_longest_work_ns",
        "_on_ended",
        "_short",
        "_slices_congested",
        "_stalled_ns",
        "_stalls",
        "_work",
        "_work_epoch",
        "_work_is_settled",
        "begin_ns",
        "callbacks",
        "closed_ns",
        "ended",
        "epoch",
        "faults",
        "identity",
        "opened_ns",
        "scene",
        "tally",
        "threshold_ns",
        "turns",
    )

    def __init__(
        self, identity: LaneIdentity, *, threshold_ns: int, opened_ns: int, on_ended: Callable[[], None]
    ) -> None:
        self.identity = identity
        self.threshold_ns = threshold_ns
        self.opened_ns = opened_ns
        self.closed_ns: int | None = None
        self.epoch = 0
        self.begin_ns = 0
        self.turns = 0
        self.callbacks = 0
        self.faults = 0
        self.scene: str | None = None
        self.ended: deque[Ended] = deque(maxlen=_ENDED_MAX)
        self._on_ended = on_ended
        self._work: object = None
        self._work_epoch = 0
        self._work_is_settled = False
        self._allowance_epoch = 0
        self._allowance_ns = 0
        self._busy_ns = 0
        self._busy_ns_squared = 0
        self._longest_ns = 0
        self._long = LongTurns(threshold_ns)
        self._callbacks_before = 0
        """As there were when the turn began."""
        self._longest_work: CallbackNames | None = None
        self._longest_work_ns = 0
        self._buckets: dict[int, int] = {}
        self._short = 0
        self._stalls = 0
        self._stalled_ns = 0
        self._slices_congested = 0
        self.tally: WorkTally | None = None
        """Of the turn that goes on, once a piece of named work in it is over."""

    def begin(self, now_ns: int) -> None:
        """Work begins, or will at the moment `now_ns`. Own thread."""
        # The begin before the epoch: a reader that sees the odd epoch sees the begin that goes with it.
        self.begin_ns = now_ns
        self.epoch |= 1

    def end(self, now_ns: int) -> None:
        """Work ends; nothing where none was going on. Own thread."""
        epoch = self.epoch
        if not epoch & 1:
            return
        # Once a turn: a call of max() or of a property would cost more than all the rest.
        duration_ns = now_ns - self.begin_ns
        if duration_ns < 0:  # noqa: PLR1730
            duration_ns = 0
        # First: a watchdog that gets the GIL from here on does not take what it sees for a part of the work.
        self.epoch = epoch + 1
        if duration_ns > self.threshold_ns:
            self._record(epoch, now_ns)
        if duration_ns >= self._long.limit_ns:
            self._note_long(now_ns)
        self.turns += 1
        self._busy_ns += duration_ns
        self._busy_ns_squared += duration_ns * duration_ns
        if duration_ns > self._longest_ns:  # noqa: PLR1730
            self._longest_ns = duration_ns
        if duration_ns < _FIRST_BUCKET_NS:
            self._short += 1
        else:
            bucket = _bucket(duration_ns)
            self._buckets[bucket] = self._buckets.get(bucket, 0) + 1
            if duration_ns > SLICE_NS:
                since_opening_ns = self.begin_ns - self.opened_ns
                self._slices_congested += congested_slices(since_opening_ns, since_opening_ns + duration_ns)
        self._callbacks_before = self.callbacks
        self._longest_work_ns = 0
        if self.tally is not None:
            self.tally = None

    def close(self, now_ns: int) -> None:
        """No more work will come: its loop has stopped or its thread is gone."""
        self.epoch = (self.epoch + 1) & ~1
        self.closed_ns = now_ns

    def allow(self, allowance_ns: int) -> None:
        """The running work may take this time before it is a stall. Own thread."""
        granted_ns = self._allowance_ns if self._allowance_epoch == self.epoch else 0
        self._allowance_ns = max(allowance_ns, granted_ns)
        self._allowance_epoch = self.epoch

    def allowance(self, epoch: int) -> int:
        """What `allow` granted to the work of this epoch, 0 nothing."""
        return self._allowance_ns if self._allowance_epoch == epoch else 0

    def note_work(self, work: object, duration_ns: int, around: object = None) -> None:
        """A named piece of work of the turn that is going on is over; `around`: the one that it was a part
        of. Own thread."""
        if duration_ns > self.threshold_ns:
            # It holds the turn, whatever comes after it.
            self.name_work(names_of_work(work))
            self._work_is_settled = True
        else:
            self.name_work(around)
        names = names_of_work(work)
        if duration_ns > self._longest_work_ns:
            self._longest_work, self._longest_work_ns = names, duration_ns
        if names is not None:
            if self.tally is None:
                self.tally = WorkTally()
            self.tally.add(names.name, duration_ns)

    def name_work(self, work: object) -> None:
        """Says what is going on, as names.names_of_work has it; None: nothing that has a name. Own
        thread."""
        if self._work_epoch != self.epoch:
            self._work_epoch = self.epoch
            self._work_is_settled = False
        if not self._work_is_settled:
            self._work = work

    def work(self, epoch: int) -> Any:
        """The work of this epoch; None if it was not named."""
        return self._work if self._work_epoch == epoch else None

    def look(self) -> Ongoing | None:
        """The work that is going on; None while the thread waits. Any thread."""
        epoch = self.epoch
        if not epoch & 1:
            return None
        begin_ns = self.begin_ns
        return Ongoing(epoch, begin_ns) if self.epoch == epoch else None

    def before(self, begin_ns: int) -> TurnHistory:
        """The history of the lane before the present work, which began at `begin_ns`. Any thread."""
        return earlier(self._long.copy(), self.opened_ns, self._sums(begin_ns))

    def totals(self, now_ns: int) -> LaneTotals:
        """Sums since the lane was opened. Any thread."""
        look, identity = self.look(), self.identity
        return LaneTotals(
            lane=identity.number,
            generation=1,
            tid=identity.tid,
            loop_kind=identity.loop_kind,
            thread_name=identity.thread_name,
            opened_ns=self.opened_ns,
            closed_ns=self.closed_ns,
            turns=0 if identity.by_ticks else self.turns,
            callbacks=self.callbacks,
            busy_ns=self._busy_ns,
            busy_ns_squared=self._busy_ns_squared,
            longest_turn_ns=self._longest_ns,
            queue_ns_total=0,
            queue_ns_max=0,
            histogram=self._histogram(),
            slices_congested=self._slices_congested,
            stalls=self._stalls,
            stalled_ns=self._stalled_ns,
            busy_since_ns=look.begin_ns if look is not None and look.begin_ns <= now_ns else None,
        )

    def _histogram(self) -> tuple[tuple[int, int], ...]:
        counts = {0: self._short} if self._short else {}
        counts |= self._buckets.copy()
        return tuple((_upper_bound(bucket), count) for bucket, count in sorted(counts.items()))

    def _record(self, epoch: int, now_ns: int) -> None:
        allowance_ns = self.allowance(epoch)
        if now_ns - self.begin_ns <= allowance_ns:
            return
        cpu_ns = time.thread_time_ns()
        work = names_of_work(self.work(epoch))
        self._stalls += 1
        self._stalled_ns += now_ns - self.begin_ns
        self.ended.append(
            Ended(
                epoch,
                self.begin_ns,
                now_ns,
                cpu_ns,
                self.scene,
                work,
                allowance_ns,
                self.tally or WorkTally(),
                self.before(self.begin_ns),
                self.callbacks - self._callbacks_before,
                self._longest_work_ns,
            )
        )
        self._on_ended()

    def _sums(self, begin_ns: int) -> LaneSums:
        """The sums up to the turn that began then, which is not over."""
        turns = 0 if self.identity.by_ticks else self.turns
        return LaneSums(begin_ns, turns, self._callbacks_before, self._busy_ns)

    def _note_long(self, now_ns: int) -> None:
        self._long.add(
            LongTurn(
                self._sums(self.begin_ns),
                now_ns,
                self.callbacks - self._callbacks_before,
                self._longest_work_ns,
                self._longest_work if self._longest_work_ns else None,
            )
        )


def _bucket(duration_ns: int) -> int:
    """Number of the bucket: 0 below the first octave, then `octave * 16 + part of it`."""
    octave = duration_ns.bit_length() - 1 - _MIN_BITS
    if octave < 0:
        return 0
    return 1 + (octave << _SUB_BITS) + ((duration_ns >> (octave + _MIN_BITS - _SUB_BITS)) & 15)


def _upper_bound(bucket: int) -> int:
    """The first duration beyond a bucket."""
    if bucket == 0:
        return _FIRST_BUCKET_NS
    octave, part = divmod(bucket - 1, 1 << _SUB_BITS)
    return (17 + part) << (octave + _MIN_BITS - _SUB_BITS)


LEAST_NS = 1_000_000
_ROUND_NS = 4_000_000_000
_KEPT_MAX = 64


class LaneSums(NamedTuple):
    """The sums of a lane at a moment."""

    at_ns: int
    turns: int
    callbacks: int
    busy_ns: int


class LongTurn(NamedTuple):
    """A turn that was long."""

    before: LaneSums
    end_ns: int
    callbacks: int
    longest_ns: int
    longest: CallbackNames | None

    @property
    def after(self) -> LaneSums:
        """What the lane had done when it was over."""
        return LaneSums(
            self.end_ns,
            self.before.turns + 1,
            self.before.callbacks + self.callbacks,
            self.before.busy_ns + self.end_ns - self.before.at_ns,
        )


class TurnHistory(NamedTuple):
    """What there was before a stall, as StallEvidence has it."""

    work: tuple[LongWork, ...] = ()
    from_ns: int | None = None
    last: ShortWork | None = None


class LongTurns:
    """The log of one lane. Own thread; others may copy it."""

    __slots__ = ("_kept", "_most_ns", "limit_ns")

    def __init__(self, threshold_ns: int) -> None:
        self.limit_ns = LEAST_NS
        self._most_ns = max(LEAST_NS, threshold_ns // 2)
        self._kept: deque[LongTurn] = deque(maxlen=_KEPT_MAX)

    def add(self, turn: LongTurn) -> None:
        """A turn is over that was no shorter than the limit."""
        kept = self._kept
        if kept and turn.before.at_ns - kept[-1].end_ns > _ROUND_NS:
            self.limit_ns = LEAST_NS
        elif len(kept) == _KEPT_MAX and turn.end_ns - kept[0].before.at_ns < _ROUND_NS:
            self.limit_ns = min(2 * self.limit_ns, self._most_ns)
        kept.append(turn)

    def copy(self) -> tuple[LongTurn, ...]:
        """The turns that are kept, oldest first. Any thread."""
        return tuple(self._kept.copy())


def earlier(turns: Sequence[LongTurn], opened_ns: int, begin: LaneSums) -> TurnHistory:
    """What the lane did before a stall that began with these sums. Pure."""
    over = [turn for turn in turns if turn.end_ns <= begin.at_ns]
    is_whole = len(turns) < _KEPT_MAX
    since = LaneSums(opened_ns, 0, 0, 0) if is_whole or not over else None
    work = []
    for turn in over:
        work.append(_long_work(turn, None if since is None else _short(since, turn.before)))
        since = turn.after
    return TurnHistory(
        work=tuple(work),
        from_ns=min(opened_ns if is_whole or not over else over[0].before.at_ns, begin.at_ns),
        last=None if since is None else _short(since, begin),
    )


def _long_work(turn: LongTurn, short: ShortWork | None) -> LongWork:
    length_ns = turn.end_ns - turn.before.at_ns
    named = turn.longest if 2 * turn.longest_ns >= length_ns else None
    return LongWork(
        kind=WorkKind.TURN if named is None else WorkKind.CALLBACK,
        begin_ns=turn.before.at_ns,
        end_ns=turn.end_ns,
        name=None if named is None else named.name,
        task=None if named is None else named.task,
        callbacks=turn.callbacks,
        longest_ns=turn.longest_ns,
        short=short,
    )


def _short(since: LaneSums, until: LaneSums) -> ShortWork:
    busy_ns = max(0, until.busy_ns - since.busy_ns)
    return ShortWork(
        turns=max(0, until.turns - since.turns),
        callbacks=max(0, until.callbacks - since.callbacks),
        busy_ns=busy_ns,
        idle_ns=max(0, until.at_ns - since.at_ns - busy_ns),
    )
