"""What a lane of the portable engine ran before a stall: long turns by themselves, short ones as sums.

The limit of what is long begins at a millisecond and doubles while the log goes round in less than four
seconds, up to half the threshold, as in the native engine (native/core/lane/long_work.h). A turn is recorded
once: as the callback that held most of it, or as a turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from loopcanary.model.earlier import LongWork, ShortWork, WorkKind
from loopcanary.model.evidence import CallbackNames

LEAST_NS = 1_000_000
_ROUND_NS = 4_000_000_000
_KEPT_MAX = 64


class LaneSums(NamedTuple):
    """What a lane had done at a moment."""

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
        """What is kept, oldest first. Any thread."""
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
