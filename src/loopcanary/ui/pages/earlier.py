"""The work of a loop in the seconds before a stall, from left to right, up to the stall's begin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from loopcanary.late_dataclass import dataclass
from loopcanary.model import EarlierWork, ShortWork, Stall, Timeline, WorkKind
from loopcanary.model.units import format_duration
from loopcanary.ui.pages.timeline import Block, TimelineLane, ticks
from loopcanary.words.earlier import EarlierRow, earlier_rows, is_within, short_words, work_words
from loopcanary.words.text import printable

_NAME_MAX = 60
_ROWS_MAX = 64
_NARROWEST = 0.3
"""Per cent: a millisecond of ten seconds must be visible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierView:
    length_ns: int
    """The drawn time, which ends with the stall's begin."""
    ticks: tuple[tuple[float, str], ...]
    """Positions in per cent, and times before the stall."""
    lanes: tuple[TimelineLane, ...]
    rows: tuple[EarlierRow, ...]


def earlier_view(stall: Stall) -> EarlierView | None:
    """None: nothing was recorded, or nothing was long."""
    timeline = stall.timeline
    if timeline is None or not timeline.earlier:
        return None
    length = max(1, *(work.ago_ns for work in timeline.earlier))
    calls: list[Block] = []
    turns: list[Block] = []
    numbers = _numbers(timeline)
    for work in timeline.earlier:
        if work.kind is WorkKind.TURN:
            turns.append(_block(work, length, "turn", "turn"))
        else:
            name = _name(work)
            calls.append(_block(work, length, f"line{numbers[name] % 4}", name))
    lanes = (
        ("Callbacks", calls),
        ("Turns", turns),
        ("Short work", tuple(_between(timeline, length))),
        ("Garbage", tuple(_pauses(timeline, length))),
    )
    return EarlierView(
        length_ns=length,
        ticks=tuple(
            (100 - 100 * at / length, f"-{format_duration(at)}" if at else "stall")
            for at in reversed(tuple(ticks(length)))
        ),
        lanes=tuple(TimelineLane(name=name, blocks=tuple(blocks)) for name, blocks in lanes if blocks),
        rows=earlier_rows(timeline, _ROWS_MAX, _NAME_MAX),
    )


def _numbers(timeline: Timeline) -> dict[str, int]:
    """Numbers the callbacks by their time: colours repeat, those of the longest last."""
    times: Counter[str] = Counter()
    for work in timeline.earlier:
        if work.kind is WorkKind.CALLBACK:
            times[_name(work)] += work.length_ns
    return {name: number for number, (name, _) in enumerate(times.most_common())}


def _name(work: EarlierWork) -> str:
    return printable(work.name, _NAME_MAX) if work.name else "no name"


def _place(ago_ns: int, length_ns: int, whole_ns: int) -> tuple[float, float]:
    """Left edge and width, in per cent."""
    width = min(max(100 * length_ns / whole_ns, _NARROWEST), 100.0)
    left = min(100 - 100 * min(ago_ns, whole_ns) / whole_ns, 100 - width)
    return round(left, 3), round(width, 3)


def _block(work: EarlierWork, whole_ns: int, key: str, label: str) -> Block:
    x, width = _place(work.ago_ns, work.length_ns, whole_ns)
    words = (
        f"{work_words(work, _NAME_MAX)}, {format_duration(work.length_ns)}, "
        f"{format_duration(work.ago_ns)} before the stall"
    )
    return Block(x=x, width=width, key=key, words=words, label=label)


def _pauses(timeline: Timeline, whole_ns: int) -> Iterator[Block]:
    for pause in timeline.pauses:
        ago_ns = -pause.offset_ns
        if 0 < ago_ns <= whole_ns:
            x, width = _place(ago_ns, min(pause.length_ns, ago_ns), whole_ns)
            words = (
                f"generation {pause.generation} on {printable(pause.thread, _NAME_MAX)}, "
                f"{format_duration(pause.length_ns)}"
            )
            yield Block(x=x, width=width, key="gc" if pause.own else "other-gc", words=words)


def _between(timeline: Timeline, whole_ns: int) -> Iterator[Block]:
    """The gaps between long work, each as high as the loop was busy in it."""
    gaps: list[tuple[int, int, ShortWork | None]] = []
    until = whole_ns
    turn: EarlierWork | None = None
    for work in timeline.earlier:
        if turn is not None and is_within(work, turn):
            continue
        turn = work if work.kind is WorkKind.TURN else None
        gaps.append((until, until - work.ago_ns, work.short))
        until = work.ago_ns - work.length_ns
    gaps.append((until, until, timeline.earlier_last))
    for ago_ns, length_ns, short in gaps:
        if short is None or length_ns <= 0 or not short.busy_ns:
            continue
        share = min(1.0, short.busy_ns / length_ns)
        words = f"{short_words(short)}: busy {format_duration(short.busy_ns)} of {format_duration(length_ns)}"
        x, width = _place(ago_ns, length_ns, whole_ns)
        yield Block(x=x, width=width, key="short", words=words, height=max(share, 0.08))
