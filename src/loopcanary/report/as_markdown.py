"""The report as Markdown, for an issue tracker.

Names and sources of the watched program stand in code spans and blocks, where they are neither markup nor
mentions of people; other text has all that Markdown and HTML act on escaped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopcanary.model import Cause
from loopcanary.model.units import format_duration
from loopcanary.report import markdown_frames, markdown_issue, markdown_loops, markdown_sessions
from loopcanary.report.anywhere import ANYWHERE, is_anywhere
from loopcanary.report.gain_words import gain_words
from loopcanary.report.markdown_text import code, code_block, escaped, stack_lines
from loopcanary.report.times import moment, span
from loopcanary.report.trend import trend_words
from loopcanary.words.causes import cause_words, confidence_word, no_line_words, severity_word, struck_words
from loopcanary.words.earlier import earlier_rows
from loopcanary.words.text import count_of, place, printable, underlined
from loopcanary.words.waiting import (
    contributor_words,
    holder_words,
    scheduler_words,
    second_cause_words,
    share_words,
    target_words,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loopcanary.model import Culprit, Ledger, Stall
    from loopcanary.model.search import StallGroup
    from loopcanary.report.model import GroupDetails, Report

_NAME_MAX = 100
_SOURCE_WIDTH = 120
_STACKS_MAX = 3
_EARLIER_MAX = 20
_CONTRIBUTORS_MAX = 5


def render(report: Report, folder: str = "") -> str:
    """The whole report; paths below `folder` relative to it."""
    if report.issue_details is not None:
        return "\n".join(markdown_issue.document(report, folder)) + "\n"
    return "\n".join(_Markdown(folder).lines(report)) + "\n"


class _Markdown:
    def __init__(self, folder: str) -> None:
        self._folder = folder

    def lines(self, report: Report) -> Iterator[str]:
        sums = report.sums
        places = count_of(sums.groups, "place")
        sum_words = f"{count_of(sums.stalls, 'stall')} in {places}, {format_duration(sums.total_ns)}"
        yield f"## {'No stall was recorded' if report.is_empty else sum_words}"
        yield ""
        if report.watched.total_ns:
            yield f"Watched for {format_duration(report.watched.total_ns)}."
            yield ""
        if len(report.groups) > 1:
            yield from self._table(report)
        for number, group in enumerate(report.groups, start=1):
            yield from self._group(number, group, report)
        left_out = sums.groups - len(report.groups)
        if left_out > 0:
            yield f"And {count_of(left_out, 'more place')}."
            yield ""
        yield from markdown_frames.issue_section(report.issue_groups, report.issue_places)
        yield from markdown_loops.section(report.sessions)
        yield from markdown_frames.trace_section(report.sessions)
        yield from markdown_sessions.section(report.sessions)

    def _table(self, report: Report) -> Iterator[str]:
        yield "| | total | count | median | max | trend | last seen | cause | where |"
        yield "|---|---:|---:|---:|---:|---|---|---|---|"
        for number, group in enumerate(report.groups, start=1):
            times = " | ".join(
                [
                    format_duration(group.total_ns),
                    f"{group.count:,}",
                    format_duration(group.p50_ns),
                    format_duration(group.max_ns),
                ]
            )
            # A bar ends a cell even inside a code span, unless escaped.
            spot = self._cell(group, report.worst.get(group.fingerprint)).replace("|", "\\|")
            figures = report.figures.get(group.fingerprint)
            trend = figures.trend.direction.value if figures else ""
            seen = f"{trend} | {moment(group.last_wall_ns)}"
            yield f"| {number} | {times} | {seen} | {group.cause.value} | {spot} |"
        yield ""

    def _group(self, number: int, group: StallGroup, report: Report) -> Iterator[str]:
        worst = report.worst.get(group.fingerprint)
        yield f"### {number}. {escaped(printable(group.title, _NAME_MAX))}"
        yield ""
        yield from self._place(group, worst)
        seen = span(group.first_wall_ns, group.last_wall_ns)
        sums = f"{count_of(group.count, 'time')}, {format_duration(group.total_ns)} in all"
        lengths = f"median {format_duration(group.p50_ns)}, max {format_duration(group.max_ns)}"
        yield f"- **Stalls**: {sums}, {lengths}"
        yield f"- **Seen**: {seen}"
        if (figures := report.figures.get(group.fingerprint)) is not None:
            yield f"- **Trend**: {trend_words(figures.trend)}"
            if gains := ", ".join(gain_words(figures.gains)):
                yield f"- **Gain**: {escaped(gains)}"
        second = second_cause_words(worst) if worst is not None else ""
        more = f"; {second}" if second else ""
        yield f"- **Cause**: {group.cause.value}{_sure(group, worst)}, {cause_words(group.cause)}{more}"
        if worst is not None:
            yield from self._worst(worst)
        yield f"- **Fingerprint**: {code(group.fingerprint)}{_grouped(report.details)}"
        yield ""
        if worst is not None and report.details is not None:
            yield from _shortly_before(worst)
        if worst is not None:
            yield from self._stacks(worst)

    def _place(self, group: StallGroup, worst: Stall | None) -> Iterator[str]:
        """The line to change: the one of the thread that held what was waited for, where that is known."""
        holder = worst.holder.culprit if worst is not None and worst.holder is not None else None
        if holder is not None:
            yield f"Held at {self._spot(holder, group.cause)}"
            yield ""
            yield from _block(holder)
        if group.culprit is not None or holder is None:
            yield f"{'Waited at ' if holder is not None else ''}{self._spot_of(group)}"
            yield ""
            yield from _source(group)

    def _worst(self, stall: Stall) -> Iterator[str]:
        for line in stall.evidence:
            yield f"  - {escaped(printable(line, 300))}"
        who = [f"{label} {code(text)}" for label, text in _who(stall) if text]
        yield f"- **The longest**: {severity_word(stall.severity)}, {stall.state.value}; {', '.join(who)}"
        if stall.waited_on is not None:
            yield f"- **Waited on**: {escaped(target_words(stall.waited_on))}"
        for holder in stall.holders or ((stall.holder,) if stall.holder is not None else ()):
            at = f" at {self._spot(holder.culprit, stall.cause)}" if holder.culprit else ""
            yield f"- **Held by**: {escaped(holder_words(holder))}{at}"
        for portion in stall.portions:
            where = self._spot(portion.culprit, portion.cause)
            yield f"  - {share_words(portion.share)} {portion.cause.value}: {where}"
        for contributor in stall.contributors[:_CONTRIBUTORS_MAX]:
            scheduled = scheduler_words(contributor, self._folder)
            words = contributor_words(contributor) + (f"; {scheduled}" if scheduled else "")
            yield f"  - {escaped(words)}"
        if time := _ledger(stall.ledger):
            yield f"- **Time of the longest**: {time}"
        if stall.advice:
            yield f"- **Advice**: {escaped(printable(stall.advice, 1_000))}"

    def _cell(self, group: StallGroup, worst: Stall | None) -> str:
        holder = worst.holder.culprit if worst is not None and worst.holder is not None else None
        known = holder is not None and group.culprit is None
        return self._spot(holder, group.cause) if known else self._spot_of(group)

    def _spot_of(self, group: StallGroup) -> str:
        return ANYWHERE if is_anywhere(group) else self._spot(group.culprit, group.cause)

    def _spot(self, culprit: Culprit | None, cause: Cause) -> str:
        if culprit is None:
            return no_line_words(cause)
        return f"{code(place(culprit.file, culprit.line, self._folder))} in {code(culprit.qualname)}"

    def _stacks(self, stall: Stall) -> Iterator[str]:
        if not stall.stacks:
            return
        heaviest = sorted(stall.stacks, key=lambda stack: -stack.weight_ns)[:_STACKS_MAX]
        yield "<details><summary>Stacks, innermost frame first</summary>"
        yield ""
        for stack in heaviest:
            yield from code_block([f"{format_duration(stack.weight_ns)}:", *stack_lines(stack, self._folder)])
            yield ""
        yield "</details>"
        yield ""


def _shortly_before(stall: Stall) -> Iterator[str]:
    timeline = stall.timeline
    if timeline is None or not timeline.earlier:
        return
    yield "<details><summary>What the loop ran shortly before</summary>"
    yield ""
    yield "| before | for | what |"
    yield "| ---: | ---: | --- |"
    for row in earlier_rows(timeline, _EARLIER_MAX, _NAME_MAX):
        ago = "" if row.ago_ns is None else format_duration(row.ago_ns)
        inner = "in it: " if row.is_inner else ""
        yield f"| {ago} | {format_duration(row.length_ns)} | {inner}{escaped(row.words)} |"
    yield ""
    yield "</details>"
    yield ""


def _who(stall: Stall) -> list[tuple[str, str | None]]:
    return [
        ("thread", stall.thread),
        ("callback", stall.callback),
        ("task", stall.task),
        ("scene", stall.scene),
        ("id", stall.id),
    ]


def _ledger(ledger: Ledger) -> str:
    entries = [
        ("on CPU", ledger.on_cpu_ns),
        ("of that garbage collection", ledger.gc_ns),
        ("waiting for the GIL", ledger.gil_wait_ns),
        ("waiting for a CPU", ledger.run_queue_ns),
        ("blocked", ledger.blocked_ns),
    ]
    return ", ".join(f"{word} {format_duration(ns)}" for word, ns in entries if ns)


def _sure(group: StallGroup, worst: Stall | None) -> str:
    if worst is None or worst.cause is not group.cause or group.cause is Cause.UNKNOWN:
        return ""
    return f" ({confidence_word(worst.confidence)})"


def _source(group: StallGroup) -> Iterator[str]:
    culprit, struck = group.culprit, struck_words(group.cause)
    if culprit is not None and struck and not is_anywhere(group):
        yield f"{struck.capitalize()}."
        yield ""
        return
    if culprit is not None:
        yield from _block(culprit)


def _block(culprit: Culprit) -> Iterator[str]:
    if not culprit.source:
        return
    source, marks = underlined(culprit.source, culprit.column, culprit.end_column, _SOURCE_WIDTH)
    yield from code_block([source, marks] if marks else [source], "python")
    yield ""


def _grouped(details: GroupDetails | None) -> str:
    if details is None or not details.parts:
        return ""
    return ", by " + ", ".join(code(part) for part in details.parts)
