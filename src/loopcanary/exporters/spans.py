"""A stall as stacks over time, as far as their order is known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from loopcanary.model import Stall
from loopcanary.model.stack_frame import StackFrame
from loopcanary.model.timeline import Activity, Doing, Span, Timeline

NOT_READ = StackFrame(function="(stack not read)", qualname="(stack not read)", file="", line=0, in_app=False)
NO_SAMPLE = StackFrame(function="(no sample)", qualname="(no sample)", file="", line=0, in_app=False)
LEFT_OUT = StackFrame(
    function="(outer frames left out)", qualname="(outer frames left out)", file="", line=0, in_app=False
)
_UNKNOWN = Activity(doing=Doing.UNKNOWN)


class Stretch(NamedTuple):
    """A time with one stack, outermost frame first."""

    begin_ns: int
    """The time from the stall's begin."""
    length_ns: int
    samples: int
    frames: tuple[StackFrame, ...]
    activity: Activity


class Event(NamedTuple):
    """A frame is entered or left; one that is left is the last that was entered."""

    at_ns: int
    entered: StackFrame | None
    """None: left."""


def timeline_of(stall: Stall) -> Timeline:
    """The stall's timeline. If it was stored without one, its stacks one after the other, heaviest first: the
    weights are true, the times are not."""
    if stall.timeline is not None:
        return stall.timeline
    spans, offset_ns = [], 0
    for number, stack in enumerate(stall.stacks):
        spans.append(
            Span(offset_ns=offset_ns, length_ns=stack.weight_ns, samples=1, stack=number, activity=_UNKNOWN)
        )
        offset_ns += stack.weight_ns
    return Timeline(spans=tuple(spans), seen_from_ns=0, seen_until_ns=offset_ns)


def stretches(stall: Stall) -> Iterator[Stretch]:
    """The stall from begin to end. Without samples and traced calls it is one stretch that says so."""
    spans = timeline_of(stall).spans
    if not spans and stall.calls is None:
        yield Stretch(0, stall.duration_ns, 0, (NO_SAMPLE,), _UNKNOWN)
    for span in spans:
        yield Stretch(
            span.offset_ns, span.length_ns, span.samples, _outermost_first(stall, span.stack), span.activity
        )


def weights(stall: Stall) -> Iterator[tuple[tuple[StackFrame, ...], int, int]]:
    """(frames, outermost first; nanoseconds; samples) of each different stack, in any order."""
    held: dict[tuple[StackFrame, ...], tuple[int, int]] = {}
    for stretch in stretches(stall):
        length_ns, samples = held.get(stretch.frames, (0, 0))
        held[stretch.frames] = length_ns + stretch.length_ns, samples + stretch.samples
    for frames, (length_ns, samples) in held.items():
        yield frames, length_ns, samples


def events(stall: Stall) -> Iterator[Event]:
    """When each frame was entered and left; neighbours share a frame that goes on."""
    open_frames: tuple[StackFrame, ...] = ()
    end_ns = 0
    for stretch in stretches(stall):
        if stretch.length_ns <= 0:
            continue
        shared = _shared(open_frames, stretch.frames)
        yield from (Event(stretch.begin_ns, None) for _ in open_frames[shared:])
        yield from (Event(stretch.begin_ns, frame) for frame in stretch.frames[shared:])
        open_frames, end_ns = stretch.frames, stretch.begin_ns + stretch.length_ns
    yield from (Event(end_ns, None) for _ in open_frames)


def _outermost_first(stall: Stall, number: int | None) -> tuple[StackFrame, ...]:
    if number is None or not 0 <= number < len(stall.stacks):
        return (NOT_READ,)
    stack = stall.stacks[number]
    frames = stack.frames[::-1] or (NOT_READ,)
    return (LEFT_OUT, *frames) if stack.truncated else frames


def _shared(left: tuple[StackFrame, ...], right: tuple[StackFrame, ...]) -> int:
    count = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        count += 1
    return count
