"""A stall's samples from left to right: what the thread did, its lines, who held it up, collections."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

from loopcanary.late_dataclass import dataclass
from loopcanary.model import Stall
from loopcanary.model.loop_frames import work_of
from loopcanary.model.timeline import Pause, Span, Timeline
from loopcanary.model.units import format_duration
from loopcanary.words.text import place, printable
from loopcanary.words.waiting import DOING_WORDS, held_words, lock_words, target_words

_NAME_MAX = 60
_ROWS_MAX = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A stretch of one lane; x and width in per cent of the whole time."""

    x: float
    width: float
    key: str
    """Names its colour and pattern."""
    words: str
    label: str = ""
    """Written into a block that is wide enough."""
    height: float = 1.0
    """The share of the lane's height, from below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineLane:
    name: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanRow:
    offset_ns: int
    length_ns: int
    samples: int
    doing: str
    where: str
    more: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineView:
    begin_ns: int
    """The begin of the drawn time, from the stall's begin: below 0 if earlier time is known."""
    length_ns: int
    ticks: tuple[tuple[float, str], ...]
    """Positions in per cent, and times from the stall's begin."""
    lanes: tuple[TimelineLane, ...]
    threshold_x: float | None
    stall_x: float
    threads_x: float | None
    unseen: tuple[Block, ...]
    """The times before the first look and after the last one."""
    keys: tuple[tuple[str, str], ...]
    """The keys of the first lane, and their words."""
    rows: tuple[SpanRow, ...]
    left_out: int
    thinned: bool
    queued_ns: int


def timeline_view(stall: Stall) -> TimelineView | None:
    """None: the order of its samples was not kept."""
    timeline = stall.timeline
    if timeline is None or not timeline.spans or stall.duration_ns <= 0:
        return None
    queued = min(stall.queue_ns, stall.duration_ns // 2) if stall.queue_ns > stall.duration_ns // 100 else 0
    begin = -queued
    length = stall.duration_ns - begin

    def x(offset_ns: int) -> float:
        return round(100 * min(max(offset_ns - begin, 0), length) / length, 3)

    def block(offset_ns: int, length_ns: int, key: str, words: str, label: str = "") -> Block:
        left, right = x(offset_ns), x(offset_ns + length_ns)
        return Block(x=left, width=round(max(right - left, 0.15), 3), key=key, words=words, label=label)

    occurring = {span.activity.doing for span in timeline.spans}
    return TimelineView(
        begin_ns=begin,
        length_ns=length,
        ticks=tuple((x(offset), tick(offset)) for offset in ticks(stall.duration_ns)),
        lanes=tuple(_lanes(stall, timeline, queued, block)),
        threshold_x=x(stall.threshold_ns) if 0 < stall.threshold_ns < stall.duration_ns else None,
        stall_x=x(0),
        threads_x=x(timeline.threads_at_ns) if timeline.threads_at_ns is not None else None,
        unseen=tuple(one for one in _unseen(stall, timeline, block) if one.width > 0.3),
        keys=tuple((kind.value, words) for kind, words in DOING_WORDS.items() if kind in occurring),
        rows=tuple(_row(stall, span) for span in timeline.spans[:_ROWS_MAX]),
        left_out=max(len(timeline.spans) - _ROWS_MAX, 0),
        thinned=timeline.thinned,
        queued_ns=stall.queue_ns,
    )


def _lanes(stall: Stall, timeline: Timeline, queued_ns: int, block: _MakeBlock) -> Iterator[TimelineLane]:
    yield TimelineLane(name="Thread", blocks=tuple(_doing_block(span, block) for span in timeline.spans))
    yield _stack_lane(stall, timeline, block)
    if holders := tuple(_holder_block(span, block) for span in timeline.spans if span.activity.holder):
        yield TimelineLane(name="Held by", blocks=_joined(holders))
    seen = [one for one in timeline.pauses if one.offset_ns + one.length_ns > -queued_ns]
    if pauses := tuple(_pause_block(pause, block) for pause in seen):
        yield TimelineLane(name="Garbage", blocks=pauses)
    if queued_ns:
        words = f"its callback waited {format_duration(stall.queue_ns)} for the loop"
        yield TimelineLane(name="Queue", blocks=(block(-queued_ns, queued_ns, "queued", words),))


def _holder_block(span: Span, block: _MakeBlock) -> Block:
    label = printable(span.activity.holder or "", 24)
    return block(span.offset_ns, span.length_ns, "holder", _held_words(span), label)


def _pause_block(pause: Pause, block: _MakeBlock) -> Block:
    words = (
        f"generation {pause.generation} on {printable(pause.thread, _NAME_MAX)}, "
        f"{format_duration(pause.length_ns)}, {pause.collected:,} objects"
    )
    return block(pause.offset_ns, pause.length_ns, "gc" if pause.own else "other-gc", words)


def _unseen(stall: Stall, timeline: Timeline, block: _MakeBlock) -> Iterator[Block]:
    yield block(0, timeline.seen_from_ns, "unseen", "before the first sample: as the first one")
    after_ns = stall.duration_ns - timeline.seen_until_ns
    yield block(timeline.seen_until_ns, after_ns, "unseen", "after the last sample: as the last one")


class _MakeBlock(Protocol):
    def __call__(self, offset_ns: int, length_ns: int, key: str, words: str, label: str = "") -> Block: ...


def _doing_block(span: Span, block: _MakeBlock) -> Block:
    more = _more(span)
    words = f"{DOING_WORDS[span.activity.doing]}, {format_duration(span.length_ns)}" + (
        f": {more}" if more else ""
    )
    return block(
        span.offset_ns, span.length_ns, span.activity.doing.value, words, DOING_WORDS[span.activity.doing]
    )


def _stack_lane(stall: Stall, timeline: Timeline, block: _MakeBlock) -> TimelineLane:
    """The lines of the program's own code; neighbours in the same line are one block."""
    blocks: list[Block] = []
    numbers: dict[str, int] = {}
    begin = end = 0
    last: str | None = None
    for span in timeline.spans:
        where = _where(stall, span)
        if where != last and last is not None:
            number = numbers.setdefault(last, len(numbers))
            blocks.append(_line_block(block, begin, end, last, number))
        if where != last:
            begin, last = span.offset_ns, where
        end = span.offset_ns + span.length_ns
    if last is not None:
        blocks.append(_line_block(block, begin, end, last, numbers.setdefault(last, len(numbers))))
    return TimelineLane(name="Line", blocks=tuple(blocks))


def _line_block(block: _MakeBlock, begin: int, end: int, where: str, number: int) -> Block:
    words = f"{where}, {format_duration(end - begin)}"
    return block(begin, end - begin, f"line{number % 4}", words, where)


def _joined(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """Joins neighbours with the same words."""
    joined: list[Block] = []
    for one in blocks:
        last = joined[-1] if joined else None
        if last is not None and last.words == one.words and one.x - (last.x + last.width) < 0.05:
            joined[-1] = replace(last, width=round(one.x + one.width - last.x, 3))
        else:
            joined.append(one)
    return tuple(joined)


def _where(stall: Stall, span: Span) -> str:
    if span.stack is None or not 0 <= span.stack < len(stall.stacks):
        return "no stack could be read"
    frames = work_of(stall.stacks[span.stack].frames)
    frame = next((one for one in frames if one.in_app), frames[0] if frames else None)
    if frame is None:
        return "no frame"
    file = frame.file.rpartition("/")[2]
    return printable(f"{frame.function} ({place(file, frame.line, '')})", _NAME_MAX)


def _held_words(span: Span) -> str:
    held = held_words(span.activity.lock, span.activity.holder or "")
    return f"{printable(held, 2 * _NAME_MAX)}{_inside(span)}"


def _inside(span: Span) -> str:
    frame = next((one for one in span.activity.holder_frames if one.in_app), None)
    if frame is None:
        return ""
    file = frame.file.rpartition("/")[2]
    return printable(f" in {frame.function} ({place(file, frame.line, '')})", _NAME_MAX)


def _more(span: Span) -> str:
    activity = span.activity
    parts = [
        f"in {printable(activity.syscall, _NAME_MAX)}" if activity.syscall else "",
        target_words(activity.waited_on, _NAME_MAX) if activity.waited_on is not None else "",
        f"{printable(lock_words(activity.lock, activity.holder), 2 * _NAME_MAX)}{_inside(span)}",
        f"state {printable(activity.state, 4)}" if activity.state else "",
    ]
    return ", ".join(part for part in parts if part)


def _row(stall: Stall, span: Span) -> SpanRow:
    return SpanRow(
        offset_ns=span.offset_ns,
        length_ns=span.length_ns,
        samples=span.samples,
        doing=DOING_WORDS[span.activity.doing],
        where=_where(stall, span),
        more=_more(span),
    )


def ticks(duration_ns: int) -> Iterator[int]:
    """Round moments from 0 to `duration_ns`, at most seven."""
    step = next(
        (
            mantissa * 10**power
            for power in range(3, 20)
            for mantissa in (1, 2, 5)
            if duration_ns // (mantissa * 10**power) <= 6
        ),
        duration_ns,
    )
    return iter(range(0, duration_ns + 1, step))


def tick(offset_ns: int) -> str:
    return format_duration(offset_ns) if offset_ns else "0"
