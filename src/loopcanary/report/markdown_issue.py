"""An issue that is no stall with everything that is known of it, as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopcanary.model.call_tree import levels
from loopcanary.model.issues.lags import IdleLag, InputLag, Jank
from loopcanary.model.issues.slow_method import ROWS_MAX, SlowMethod
from loopcanary.model.issues.startup import PHASES_MAX, Startup
from loopcanary.model.units import format_duration
from loopcanary.report.frame_words import fps_words, frozen_words, level_words
from loopcanary.report.markdown_text import code, code_block, escaped, stack_lines
from loopcanary.report.times import exactly, moment
from loopcanary.words.causes import cause_words
from loopcanary.words.lags import evidence_of
from loopcanary.words.text import count_of, place, printable
from loopcanary.words.traced import phase_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loopcanary.model import Culprit, LagIssue, TracedIssue
    from loopcanary.report.model import Report

_STACKS_MAX = 8
_DEEPEST = 20
_LATEST_MAX = 10


def document(report: Report, folder: str) -> Iterator[str]:
    """One issue, or the longest one of a group and its latest ones; paths below `folder` relative to it."""
    group = report.issue_groups[0] if report.issue_groups else None
    is_one = len(report.issues) == 1 or group is None
    issue = report.issues[0] if is_one else group.worst  # type: ignore[union-attr]
    yield f"## {issue.kind.value}: {escaped(printable(issue.title, 200))}"
    yield ""
    if group is not None and group.count > 1:
        sums = f"{count_of(group.count, 'time')}, {format_duration(group.total_ns)} in all"
        yield f"- **Issues**: {sums}, median {format_duration(group.p50_ns)}"
    yield from _facts(issue, report, folder)
    yield ""
    yield from _tree(issue, folder)
    yield from _meanwhile(issue, report, folder)
    yield from _stacks(issue, report, folder)
    if not is_one:
        yield "### Latest"
        yield ""
        for one in report.issues[:_LATEST_MAX]:
            yield f"- {moment(one.began_wall_ns)}, {format_duration(one.duration_ns)}, {code(one.id)}"


def _facts(issue: LagIssue, report: Report, folder: str) -> Iterator[str]:
    scene = f", scene {code(issue.scene)}" if issue.scene else ""
    began = f"{moment(issue.began_wall_ns)}, {format_duration(issue.duration_ns)}"
    yield f"- **Began**: {began}; loop {code(issue.loop)} on {code(issue.thread)}{scene}"
    if issue.culprit is not None:
        yield f"- **Where**: {_spot(issue.culprit, folder)}"
    yield f"- **Cause**: {issue.cause.value}, {cause_words(issue.cause)}"
    for line in evidence_of(issue):
        yield f"  - {escaped(line)}"
    for label, words in _figures(issue):
        yield f"- **{label}**: {words}"
    if issue.advice:
        yield f"- **Advice**: {escaped(printable(issue.advice, 1_000))}"
    parts = report.issue_details.parts if report.issue_details is not None else ()
    grouped = ", by " + ", ".join(code(part) for part in parts) if parts else ""
    yield f"- **Fingerprint**: {code(issue.fingerprint)}{grouped}"
    yield f"- **Id**: {code(issue.id)}"


def _figures(issue: LagIssue) -> Iterator[tuple[str, str]]:
    match issue:
        case Jank(figures=figures):
            frames = f"{fps_words(figures)}, {count_of(figures.frames, 'frame')}"
            yield "Frames", f"{frames}, {figures.dropped:,} dropped; {level_words(figures)}"
            if frozen := frozen_words(figures):
                yield "Frozen", frozen
        case InputLag():
            yield "Event", f"{code(issue.event)}, waited {format_duration(issue.queued_ns)}"
        case IdleLag():
            yield "Handler", f"{code(issue.handler)}, {count_of(issue.runs, 'run')}"
        case Startup():
            yield "Start", f"{issue.start.value}, of {code(issue.program)}, {_limit(issue)}"
        case SlowMethod():
            yield "Limit", _limit(issue)


def _limit(issue: TracedIssue) -> str:
    words = format_duration(issue.threshold_ns)
    return (
        words
        if isinstance(issue, SlowMethod)
        else f"limit {words}" + ("" if issue.is_slow else ", within it")
    )


def _tree(issue: LagIssue, folder: str) -> Iterator[str]:
    """Phases or calls, one inside the other."""
    if isinstance(issue, Startup):
        title, rows = "Phases", list(_phase_rows(issue))
    elif isinstance(issue, SlowMethod):
        title, rows = "Calls", list(_call_rows(issue, folder))
    else:
        return
    if not rows:
        return
    yield f"### {title}, with what each took and what of it by itself"
    yield ""
    yield from code_block(rows)
    if issue.left_out > 0:
        yield ""
        yield f"And {count_of(issue.left_out, 'short one')}."
    yield ""


def _phase_rows(start: Startup) -> Iterator[str]:
    phases = start.phases[:PHASES_MAX]
    for phase, level in zip(phases, levels([phase.depth for phase in phases]), strict=True):
        yield _tree_row(phase.duration_ns, phase.self_ns, level, phase_words(phase))


def _call_rows(slow: SlowMethod, folder: str) -> Iterator[str]:
    rows = slow.rows[:ROWS_MAX]
    for row, level in zip(rows, levels([row.depth for row in rows]), strict=True):
        times = f" x{row.count:,}" if row.count > 1 else ""
        where = place(row.frame.file, row.frame.line, folder)
        words = f"{printable(row.frame.qualname, 120)}{times}  {where}"
        yield _tree_row(row.total_ns, row.self_ns, level, words)


def _tree_row(total_ns: int, self_ns: int, level: int, words: str) -> str:
    took = f"{format_duration(total_ns):>8} {format_duration(self_ns):>8}"
    return f"{took}  {'  ' * min(level, _DEEPEST)}{words}"


def _meanwhile(issue: LagIssue, report: Report, folder: str) -> Iterator[str]:
    lines: list[str] = []
    if isinstance(issue, Jank):
        lines = [
            f"- {format_duration(frame.duration_ns)}, dropped {frame.dropped:,}, "
            f"began {exactly(frame.began_wall_ns)}{_named(frame.stalls)}"
            for frame in issue.worst
        ]
    if isinstance(issue, InputLag):
        lines = [
            f"- {format_duration(one.duration_ns)}, {code(one.name)}"
            + (f" at {_spot(one.culprit, folder)}" if one.culprit else "")
            + _named((one.stall,) if one.stall else ())
            for one in issue.before
        ]
    if lines:
        yield "### Worst frames" if isinstance(issue, Jank) else "### What the thread did before it"
        yield ""
        yield from lines
        yield ""
    if issue.stalls:
        known = report.issue_details.stalls if report.issue_details is not None else {}
        yield "### Stalls in that time"
        yield ""
        for stall_id in issue.stalls:
            stall = known.get(stall_id)
            more = f", {format_duration(stall.duration_ns)}, {stall.cause.value}" if stall is not None else ""
            yield f"- {code(stall_id)}{more}"
        yield ""


def _named(stalls: tuple[str, ...]) -> str:
    return ", stall " + ", ".join(code(stall) for stall in stalls) if stalls else ""


def _spot(culprit: Culprit, folder: str) -> str:
    return f"{code(place(culprit.file, culprit.line, folder))} in {code(culprit.qualname)}"


def _stacks(issue: LagIssue, report: Report, folder: str) -> Iterator[str]:
    stalls = report.issue_details.stalls.values() if report.issue_details is not None else ()
    stacks = [stack for stall in stalls for stack in stall.stacks] or list(issue.stacks)
    if not stacks:
        return
    yield "<details><summary>Stacks, innermost frame first</summary>"
    yield ""
    for stack in sorted(stacks, key=lambda stack: -stack.weight_ns)[:_STACKS_MAX]:
        yield from code_block([f"{format_duration(stack.weight_ns)}:", *stack_lines(stack, folder)])
        yield ""
    yield "</details>"
    yield ""
