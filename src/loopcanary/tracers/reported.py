"""Issues that third parties' tracers told, looked at: checked, cut to size, completed.

The wire form is the check: what it cannot write, or does not read back, is none of ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

try:
    from _blake2 import blake2s  # what hashlib gives, without OpenSSL: two megabytes in a watched process
except ImportError:  # an interpreter that hashes in another way
    from hashlib import blake2s

from loopcanary.model.call_tree import heaviest
from loopcanary.model.issues.slow_method import ROWS_MAX, SlowMethod, key_of
from loopcanary.model.issues.startup import PHASES_MAX, PhaseKind, Startup
from loopcanary.model.stall import Cause, Culprit
from loopcanary.wire import issue_from_wire, to_wire
from loopcanary.words.traced import method_words, start_words

if TYPE_CHECKING:
    from loopcanary.model import Session, Stall, TracedIssue, WeightedStack
    from loopcanary.tracers.desk import Told

TEXT_MAX = 500
"""Longer names are cut: a path is no longer as a rule, and a title never should be."""
_LIST_MAX = 5_000
"""Of longer ones only the beginning is looked at; phases and rows beyond it are counted as left out."""
_STACKS_MAX = 8
_FRAMES_MAX = 200
_STALLS_MAX = 20
_LONGEST_NS = 1 << 51
"""26 days: what the wire form keeps to the nanosecond."""
_COUNT_MAX = 1 << 53
"""Readers of JSON in other languages keep no larger number exactly."""
_NO_LOOP = "thread"


def completed(told: Told, session: Session, serial: int, stalls: Sequence[Stall]) -> TracedIssue:
    """The issue as it is stored. `stalls`: those in its time on its thread, most of it first. ValueError, or
    whatever else reading a broken object raises, where it is none."""
    issue = _checked(told.issue)
    issue = _whole_start(issue, session) if isinstance(issue, Startup) else _whole_method(issue)
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
    return replace(issue, fingerprint=traced_fingerprint(issue.kind.value, parts))


def _with_stalls(issue: TracedIssue, stalls: Sequence[Stall]) -> TracedIssue:
    """What the tracer does not say, the stall that held most of it does."""
    main = stalls[0]
    stacks = sorted((stack for stall in stalls for stack in stall.stacks), key=lambda stack: -stack.weight_ns)
    return replace(
        issue,
        cause=main.cause if issue.cause is Cause.UNKNOWN else issue.cause,
        culprit=issue.culprit or main.culprit,
        advice=issue.advice or main.advice,
        loop=main.loop if issue.loop == _NO_LOOP else issue.loop,
        stalls=tuple(dict.fromkeys([*issue.stalls, *(stall.id for stall in stalls)]))[:_STALLS_MAX],
        stacks=issue.stacks or tuple(stacks[:_STACKS_MAX]),
    )


def identity(issue: TracedIssue) -> tuple[str, ...]:
    """What the fingerprint is made of where the tracer gives none, each part as `name=value`: no line, no
    time, no process, and of the file no more than its own name and its folder's."""
    if isinstance(issue, Startup):
        return (f"start={issue.start.value}", f"program={issue.program}", *_kept(issue))
    row = issue.key_row
    if row is None:
        return (f"thread={issue.thread}",)
    file = "/".join(row.frame.file.replace("\\", "/").split("/")[-2:])
    return (f"function={row.frame.qualname}", f"file={file}")


def _kept(issue: TracedIssue) -> tuple[str, ...]:
    """Starts within their limit are no instance of the bug that those over it are."""
    return () if issue.is_news else ("limit=kept",)


def traced_fingerprint(kind: str, parts: Sequence[str]) -> str:
    """The kind and twelve hexadecimal digits."""
    digest = blake2s("\0".join((kind, *parts)).encode("utf-8", "replace")).hexdigest()
    return f"{kind}:{digest[:12]}"


def _checked(issue: object) -> TracedIssue:
    if not isinstance(issue, (Startup, SlowMethod)):
        raise TypeError(f"a tracer reports model.Startup or model.SlowMethod, not {type(issue).__name__}")
    issue, beyond = _bounded(issue)
    read = issue_from_wire(_cut(to_wire(issue)))
    if not isinstance(read, (Startup, SlowMethod)):  # a subclass with a kind of its own
        raise TypeError(f"it says of itself that it is {read.kind.value}")
    read = replace(read, stacks=_short(read.stacks), stalls=read.stalls[:_STALLS_MAX])
    times = {"duration_ns": read.duration_ns, "threshold_ns": read.threshold_ns}
    if isinstance(read, Startup):
        for number, phase in enumerate(read.phases):
            times |= {f"phases[{number}].{name}_ns": getattr(phase, f"{name}_ns") for name in _PHASE_TIMES}
            _refuse_no_count(f"phases[{number}].depth", phase.depth)
    else:
        for number, row in enumerate(read.rows):
            times |= {f"rows[{number}].{name}_ns": getattr(row, f"{name}_ns") for name in _ROW_TIMES}
            _refuse_no_count(f"rows[{number}].depth", row.depth)
            _refuse_no_count(f"rows[{number}].count", row.count)
            _refuse_no_count(f"rows[{number}].line", max(row.frame.line, 0))  # -1: none
    _refuse_no_count("left_out", max(read.left_out, 0))
    for name, ns in times.items():
        _refuse_no_count(name, ns)
        if ns > _LONGEST_NS:
            raise ValueError(f"{name}: {ns} is more than 26 days")
    return replace(read, left_out=max(read.left_out, 0) + beyond)


def _bounded(issue: TracedIssue) -> tuple[TracedIssue, int]:
    """The issue with the begin of its long lists, before anything goes through the whole of them, and how
    many of its phases or rows that leaves out."""
    own = "phases" if isinstance(issue, Startup) else "rows"
    lists = {name: getattr(issue, name) for name in (own, "stalls", "stacks")}
    begins: dict[str, Any] = {name: tuple(islice(some, _LIST_MAX)) for name, some in lists.items()}
    beyond = len(lists[own]) - _LIST_MAX if hasattr(lists[own], "__len__") else 0
    return replace(issue, **begins), max(beyond, 0)


_PHASE_TIMES = ("offset", "duration", "self")
_ROW_TIMES = ("total", "self")


def _refuse_no_count(name: str, number: int) -> None:
    if number < 0:
        raise ValueError(f"{name}: {number} is less than 0")
    if number > _COUNT_MAX:  # not shown: to write down its digits may fail, or take long
        raise ValueError(f"{name}: it is more than {_COUNT_MAX}")


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


def _whole_start(start: Startup, session: Session) -> Startup:
    kept = heaviest(
        start.phases,
        PHASES_MAX,
        depth=lambda phase: phase.depth,
        weight=lambda phase: phase.duration_ns,
    )
    start = replace(
        start,
        program=session.name[:TEXT_MAX],
        phases=tuple(start.phases[index] for index in kept),
        left_out=max(start.left_out, 0) + len(start.phases) - len(kept),
        title=start.title or start_words(start),
    )
    imports = sum(phase.self_ns for phase in start.phases if phase.kind is PhaseKind.IMPORT)
    if start.cause is Cause.UNKNOWN and imports * 2 >= start.duration_ns > 0:
        start = replace(start, cause=Cause.IMPORT)
    return start


def _whole_method(slow: SlowMethod) -> SlowMethod:
    # Of all rows, before any is left out: the key is to be the same whatever is.
    key = slow.key if slow.key_row is not None else key_of(slow.rows, slow.duration_ns)
    kept = heaviest(slow.rows, ROWS_MAX, depth=lambda row: row.depth, weight=lambda row: row.total_ns)
    rows = tuple(slow.rows[index] for index in kept)
    gone = set(range(len(slow.rows))) - set(kept)
    slow = replace(
        slow,
        rows=rows,
        # It may be further in than rows are kept, as of a recursive function.
        key=kept.index(key) if key in kept else key_of(rows, slow.duration_ns),
        left_out=max(slow.left_out, 0) + len(gone),
        left_out_ns=max(slow.left_out_ns, 0) + sum(slow.rows[index].self_ns for index in gone),
    )
    row = slow.key_row
    if row is not None and slow.culprit is None:
        frame = row.frame
        culprit = Culprit(
            function=frame.function,
            qualname=frame.qualname,
            file=frame.file,
            line=frame.line,
            source=None,
            in_app=frame.in_app,
        )
        slow = replace(slow, culprit=culprit)
    return replace(slow, title=slow.title or method_words(slow))
