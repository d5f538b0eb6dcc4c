"""Issues that tracers reported, of any registered kind: checked, cut to size, completed.

The wire form is the check: what it cannot write, or does not read back, is no issue.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

try:
    from _blake2 import blake2s  # what hashlib gives, without OpenSSL: two megabytes in a watched process
except ImportError:  # an interpreter that hashes in another way
    from hashlib import blake2s

from loopcanary.model.issues.facts import IssueFacts
from loopcanary.model.stall import Cause
from loopcanary.model.units import format_duration
from loopcanary.registry import issue_kind, said_of
from loopcanary.wire import issue_from_wire, to_wire

if TYPE_CHECKING:
    from loopcanary.model import Issue, Session, Stall, WeightedStack
    from loopcanary.tracers.desk import Told

TEXT_MAX = 500
"""Longer names are cut: a path is no longer as a rule, and a title never should be."""
_LIST_MAX = 5_000
"""Of longer ones only the beginning is looked at; `left_out`, where a kind has it, counts the rest."""
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
        ValueError, or what reading a broken object raises: it is no issue of a registered kind.
    """
    issue = _checked(told.issue)
    issue = said_of(issue, "fitted", session) or issue
    issue = replace(
        issue,
        id=f"{session.id}-{issue.kind.value}-{serial}",
        session=session.id,
        pid=session.pid,
        thread=issue.thread or told.thread[:TEXT_MAX],
        loop=issue.loop or _NO_LOOP,
        scene=issue.scene or told.scene,
    )
    if stalls:
        issue = _with_stalls(issue, stalls)
    parts = (f"bug={issue.fingerprint}", *_kept(issue)) if issue.fingerprint else identity(issue)
    return replace(
        issue,
        title=issue.title or said_of(issue, "title") or _words(issue),
        fingerprint=reported_fingerprint(issue.kind.value, parts),
    )


def _words(issue: IssueFacts) -> str:
    return f"{issue_kind(issue.kind.value).words} of {format_duration(issue.duration_ns)}"


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


def identity(issue: Issue) -> tuple[str, ...]:
    """What the fingerprint is made of where the tracer gives none, each part as `name=value`: what the kind
    says, or else the culprit's function, or the thread."""
    own = said_of(issue, "identity")
    if own is None:
        culprit = issue.culprit
        own = (
            (f"thread={issue.thread}",)
            if culprit is None
            else function_identity(culprit.qualname, culprit.file)
        )
    return (*own, *_kept(issue))


def function_identity(qualname: str, file: str) -> tuple[str, str]:
    """A function: no line, and of the file no more than its own name and its folder's."""
    return f"function={qualname}", f"file={'/'.join(file.replace(chr(92), '/').split('/')[-2:])}"


def _kept(issue: Issue) -> tuple[str, ...]:
    """Those within their limit are no instance of the bug that those over it are."""
    return () if issue.is_news else ("limit=kept",)


def reported_fingerprint(kind: str, parts: Sequence[str]) -> str:
    """The kind and twelve hexadecimal digits."""
    digest = blake2s("\0".join((kind, *parts)).encode("utf-8", "replace")).hexdigest()
    return f"{kind}:{digest[:12]}"


def refuse_negative(**numbers: Iterable[int]) -> None:
    """ValueError: one of these is less than 0."""
    for name, some in numbers.items():
        if any(number < 0 for number in some):
            raise ValueError(f"{name}: one is less than 0")


def _checked(issue: Any) -> IssueFacts:
    if not isinstance(issue, IssueFacts):
        raise TypeError(f"a tracer reports issues of registered kinds, not {type(issue).__name__}")
    issue, beyond = _bounded(issue)
    read = issue_from_wire(_cut(to_wire(issue)))
    is_its_own = isinstance(issue, type(read)) and not issue_kind(read.kind.value).place
    if not isinstance(read, IssueFacts) or not is_its_own:
        raise TypeError(f"{type(issue).__name__} is no {read.kind.value} that a tracer reports")
    _refuse_no_figure(read, read.kind.value)
    "\n".join(read.searched)
    more: dict[str, Any] = {"left_out": max(read.left_out, 0) + beyond} if hasattr(read, "left_out") else {}
    return replace(read, stacks=_short(read.stacks), stalls=read.stalls[:_STALLS_MAX], **more)


def _bounded(issue: IssueFacts) -> tuple[IssueFacts, int]:
    """The issue with the begin of its long lists, before anything goes through the whole of them, and how
    many entries of its own lists that leaves out."""
    begins: dict[str, Any] = {}
    beyond = 0
    for field in fields(issue):
        if str(field.type).startswith("tuple["):
            some = getattr(issue, field.name)
            begins[field.name] = tuple(islice(some, _LIST_MAX))
            if field.name not in ("stalls", "stacks") and hasattr(some, "__len__"):
                beyond += max(len(some) - _LIST_MAX, 0)
    return replace(issue, **begins), beyond


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
            raise ValueError(f"{path}: it is less than 0")
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


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return value[:TEXT_MAX]
    if isinstance(value, list):
        return [_cut(one) for one in value[:_LIST_MAX]]
    if isinstance(value, dict):
        return {key: _cut(one) for key, one in value.items()}
    return value
