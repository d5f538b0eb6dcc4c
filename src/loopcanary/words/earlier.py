"""What ran before a stall, in words: each long callback or turn, and what was short in between."""

from __future__ import annotations

from collections.abc import Iterator

from loopcanary.late_dataclass import dataclass
from loopcanary.model.timeline import EarlierWork, ShortWork, Timeline, WorkKind
from loopcanary.model.units import format_duration
from loopcanary.words.text import count_of, printable

_TRIFLE_NS = 1_000_000
"""Less than this between two pieces of work, and no callback, is not worth a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierRow:
    """One line."""

    ago_ns: int | None
    """Its begin before the stall's; None: short work, which lies somewhere between its neighbours."""
    length_ns: int
    """Of short work, the sum."""
    words: str
    is_inner: bool = False
    """A callback of the turn above."""


def earlier_rows(timeline: Timeline, most: int, name_max: int) -> tuple[EarlierRow, ...]:
    """The last `most` pieces of long work, oldest first, and what was short since the first of them."""
    rows: list[EarlierRow] = []
    turn: EarlierWork | None = None
    shown = timeline.earlier[-most:]
    for number, work in enumerate(shown):
        is_inner = turn is not None and is_within(work, turn)
        turn = turn if is_inner else work if work.kind is WorkKind.TURN else None
        if number > 0 or len(shown) == len(timeline.earlier):
            rows += _short_rows(work.short, is_inner=is_inner)
        rows.append(
            EarlierRow(
                ago_ns=work.ago_ns,
                length_ns=work.length_ns,
                words=work_words(work, name_max),
                is_inner=is_inner,
            )
        )
    return (*rows, *_short_rows(timeline.earlier_last, is_inner=False))


def is_within(work: EarlierWork, turn: EarlierWork) -> bool:
    """Whether the work was a part of that turn, which comes before it."""
    return work.ago_ns <= turn.ago_ns and work.ago_ns - work.length_ns >= turn.ago_ns - turn.length_ns


def _short_rows(short: ShortWork | None, *, is_inner: bool) -> Iterator[EarlierRow]:
    if short is not None and (short.callbacks or short.turns or short.busy_ns + short.idle_ns >= _TRIFLE_NS):
        yield EarlierRow(ago_ns=None, length_ns=short.busy_ns, words=short_words(short), is_inner=is_inner)


def work_words(work: EarlierWork, name_max: int) -> str:
    """`Orders.load, task poller`; `a turn of 512 callbacks, the longest 3 ms`."""
    if work.kind is WorkKind.TURN:
        words = f"a turn of {count_of(work.callbacks, 'callback')}" if work.callbacks else "a turn"
        longest = f", the longest {format_duration(work.longest_ns)}" if work.longest_ns else ""
        return words + longest
    named = printable(work.name, name_max) if work.name else "a callback without a name"
    return f"{named}, task {printable(work.task, name_max)}" if work.task else named


def short_words(short: ShortWork) -> str:
    """`41 short callbacks, 40 turns; waited 2.1 s`."""
    parts = [
        count_of(short.callbacks, "short callback") if short.callbacks else "",
        count_of(short.turns, "turn") if short.turns else "",
    ]
    did = ", ".join(part for part in parts if part) or "the loop's own work"
    return f"{did}; waited {format_duration(short.idle_ns)}" if short.idle_ns >= _TRIFLE_NS else did
