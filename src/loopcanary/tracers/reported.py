"""Issues that tracers reported, of any registered kind: checked, cut to size, completed.

The wire form is the check: what it cannot write, or does not read back, is not an issue.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from loopcanary.model import Session, Stall, WeightedStack
from loopcanary.model.issues.facts import IssueFacts
from loopcanary.model.stall import Cause
from loopcanary.model.units import format_duration
from loopcanary.protocols.kinds import issue_from_wire, kind_of
from loopcanary.tracers.bounded import TEXT_MAX, wire_of
from loopcanary.tracers.desk import Told

_STACKS_MAX = 8
_FRAMES_MAX = 200
_STALLS_MAX = 20
_LONGEST_NS = 1 << 51
"""26 days: what the wire form keeps to the nanosecond."""
_COUNT_MAX = 1 << 53
"""Readers of JSON in other languages keep no larger number exactly."""
_NO_LOOP = "thread"


def completed(told: Told, session: Session, serial: int, stalls: Sequence[Stall]) -> IssueFacts:
    """The issue as it is stored.

    Args:
        told: the issue as the tracer reported it.
        session: the run.
        serial: makes its id unique in the run.
        stalls: those in its time on its thread, the longest part first.

    Raises:
        ValueError, or what reading a broken object raises: it is not an issue of a registered kind.
    """
    issue = _checked(told.issue)
    kind = kind_of(issue)
    issue = kind.fitted(issue, session)
    issue = replace(
        issue,
        advice=issue.advice or kind.advice(issue),
        id=f"{session.id}-{issue.kind.value}-{serial}",
        session=session.id,
        pid=session.pid,
        thread=issue.thread or told.thread[:TEXT_MAX],
        loop=issue.loop or _NO_LOOP,
        scene=issue.scene or told.scene,
    )
    if stalls:
        issue = _with_stalls(issue, stalls)
    return replace(
        issue,
        title=issue.title or kind.title(issue) or f"{kind.words} of {format_duration(issue.duration_ns)}",
        fingerprint=kind.fingerprint(issue),
    )


def _with_stalls(issue: IssueFacts, stalls: Sequence[Stall]) -> IssueFacts:
    """What the tracer does not say is taken from the first stall, which held most of the time; its cause only
    where that is of the same function."""
    main = stalls[0]
    own, its = issue.culprit, main.culprit
    is_its = own is None or its is None or (own.qualname, own.file) == (its.qualname, its.file)
    stacks = sorted((stack for stall in stalls for stack in stall.stacks), key=lambda stack: -stack.weight_ns)
    return replace(
        issue,
        cause=main.cause if issue.cause is Cause.UNKNOWN and is_its else issue.cause,
        culprit=own or its,
        advice=issue.advice or main.advice,
        loop=main.loop if issue.loop == _NO_LOOP else issue.loop,
        stalls=tuple(dict.fromkeys([*issue.stalls, *(stall.id for stall in stalls)]))[:_STALLS_MAX],
        stacks=issue.stacks or tuple(stacks[:_STACKS_MAX]),
    )


def _checked(issue: Any) -> IssueFacts:
    read = issue_from_wire(wire_of(issue))
    is_its_own = isinstance(issue, type(read)) and not kind_of(read).is_judged
    if not isinstance(read, IssueFacts) or not is_its_own:
        raise TypeError(f"{type(issue).__name__} is no {read.kind.value} that a tracer reports")
    _refuse_no_figure(read, read.kind.value)
    "\n".join(read.searched)
    return replace(read, stacks=_short(read.stacks), stalls=read.stalls[:_STALLS_MAX])


def _refuse_no_figure(value: Any, path: str) -> None:
    """ValueError: a number in it, or in what it holds, is none that was measured."""
    if is_dataclass(value):
        for field in fields(value):
            _refuse_no_figure(getattr(value, field.name), f"{path}.{field.name}")
    elif isinstance(value, tuple):
        for number, one in enumerate(value):
            _refuse_no_figure(one, f"{path}[{number}]")
    elif isinstance(value, int):
        is_time = path.endswith("_ns") and not path.endswith("_wall_ns")
        if is_time and value < 0:
            raise ValueError(f"{path}: it is negative")
        if is_time and value > _LONGEST_NS:
            raise ValueError(f"{path}: it is more than 26 days")
        if abs(value) > _COUNT_MAX and not path.endswith("_wall_ns"):
            raise ValueError(f"{path}: it is more than {_COUNT_MAX}")  # to write its digits may fail


def _short(stacks: Sequence[WeightedStack]) -> tuple[WeightedStack, ...]:
    return tuple(
        replace(stack, frames=stack.frames[:_FRAMES_MAX], truncated=True)
        if len(stack.frames) > _FRAMES_MAX
        else stack
        for stack in stacks[:_STACKS_MAX]
    )
