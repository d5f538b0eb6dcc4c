"""Stalls as blocks of text for a terminal. Pure: values in, text out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loopcanary.model import Cause, StallState
from loopcanary.model.units import format_duration
from loopcanary.words.causes import cause_words, confidence_word, no_line_words, severity_word, struck_words
from loopcanary.words.text import count_of, file_url, place, printable, underlined
from loopcanary.words.waiting import (
    contributor_words,
    second_cause_words,
    share_words,
    target_words,
    thread_by_name,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopcanary.model import Culprit, LagIssue, LoopHealth, Session, Stall
    from loopcanary.reporters.terminal import Look

_TAG = "[loopcanary]"
_NAME_MAX = 60
_PATH_MAX = 200
_PROCESS_MAX = 100
_ADVICE_MAX = 300
_ROWS_MAX = 15
_LOOPS_MAX = 4
_CONTRIBUTORS_MAX = 2
_TARGET_MAX = 100
_WHOLE = 0.995

_DIM, _BOLD, _CYAN, _YELLOW, _RED = "2", "1", "36", "33", "31"
_SEVERITY_COLOUR = {"stall": _YELLOW, "hang": _RED, "ANR": "1;31"}


@dataclass(slots=True, kw_only=True)
class Tally:
    """What there was of one fingerprint in this session."""

    cause: Cause
    culprit: Culprit | None
    title: str
    count: int = 0
    total_ns: int = 0
    max_ns: int = 0

    def add(self, duration_ns: int) -> None:
        """One more stall."""
        self.count += 1
        self.total_ns += duration_ns
        self.max_ns = max(self.max_ns, duration_ns)


def stall_block(stall: Stall, look: Look, process: str = "") -> str:
    """The stall in full: what and why, where, the call, who was running, what would help. `process`: in
    which, where that is not plain."""
    lines = [_headline(stall, look), *_where(stall.culprit, stall.cause, look), *_waited_for(stall, look)]
    if who := ", ".join([*_who(stall), *_in(process)]):
        lines.append(f"  {_paint(who, _DIM, look)}")
    if stall.advice:
        lines += _advice(stall.advice, look)
    return "\n".join(lines) + "\n"


def repeat_line(stall: Stall, tally: Tally, look: Look, process: str = "") -> str:
    """The same bug again: one line."""
    sums = f"x{tally.count}, {format_duration(tally.total_ns)} so far"
    now = f"now {format_duration(stall.duration_ns)}"
    where = ", ".join([_spot(stall.culprit, stall.title, look), *_in(process)])
    return f"{_tag(look)} {_paint(sums, _BOLD, look)}, {now}: {where}\n"


def issue_line(issue: LagIssue, repeated: int, look: Look, process: str = "") -> str:
    """An issue that is no stall: one line."""
    times = f" (x{repeated + 1})" if repeated else ""
    what = _paint(f"{issue.kind.value}{times}", _YELLOW, look)
    words = ", ".join([printable(issue.title, _ADVICE_MAX), *_in(process)])
    return f"{_tag(look)} {what}: {words}\n"


def over_line(stall: Stall, look: Look, process: str = "") -> str:
    """A stall that was shown while it lasted has ended."""
    length = _severity(stall, look)
    where = ", ".join([_spot(stall.culprit, stall.title, look), *_in(process)])
    return f"{_tag(look)} over: {length}  {where}\n"


def summary_block(
    tallies: Sequence[Tally], session: Session, details: str | None, look: Look, process: str = ""
) -> str:
    """The session's end: bugs by total time, the loops' figures, where to read more."""
    count, total_ns = sum(tally.count for tally in tallies), sum(tally.total_ns for tally in tallies)
    ranked = sorted(tallies, key=lambda tally: -tally.total_ns)
    length = "".join(f", {words}" for words in [*_in(process), *_run_length(session)])
    if count:
        sums = f" in {count_of(len(ranked), 'place')}, {format_duration(total_ns)} in all"
        lines = [f"{_tag(look)} {count_of(count, 'stall')}{sums}{length}", *_table(ranked, look)]
    else:
        lines = [
            f"{_tag(look)} no stall over {format_duration(session.threshold_ns)} in this process{length}"
        ]
    lines += [_loop_line(loop, look) for loop in session.loops[:_LOOPS_MAX] if loop.turns]
    if details and count:
        lines.append(f"  {_paint('more:', _DIM, look)} {details}")
    return "\n".join(lines) + "\n"


def _headline(stall: Stall, look: Look) -> str:
    state = {
        StallState.ENDED: "",
        StallState.ONGOING: " and still going on",
        StallState.KILLED: " until the process was killed",
    }[stall.state]
    sure = "" if stall.cause is Cause.UNKNOWN else f" ({confidence_word(stall.confidence)})"
    verdict = f"{_paint(stall.cause.value, _BOLD, look)}{sure}: {cause_words(stall.cause)}"
    second = second_cause_words(stall)
    return f"{_tag(look)} {_severity(stall, look)}{state}, {verdict}{f'; {second}' if second else ''}"


def _severity(stall: Stall, look: Look) -> str:
    word = severity_word(stall.severity)
    return _paint(f"{word} {format_duration(stall.duration_ns)}", _SEVERITY_COLOUR[word], look)


def _where(culprit: Culprit | None, cause: Cause, look: Look) -> list[str]:
    if culprit is None:
        return [f"  {no_line_words(cause)}"]
    foreign = "" if culprit.in_app else " (not your code)"
    lines = [f"  {_linked(culprit, look)} in {_name(culprit.qualname)}{foreign}"]
    if struck := struck_words(cause):
        lines.append(f"    {_paint(struck, _DIM, look)}")
    elif culprit.source:
        source, marks = underlined(culprit.source, culprit.column, culprit.end_column, look.width - 4)
        lines.append(f"    {source}")
        if marks:
            lines.append(f"    {_paint(marks, _YELLOW, look)}")
    return lines


def _waited_for(stall: Stall, look: Look) -> list[str]:
    """One line at most: what it waited on, who held that, or which callbacks the turn consisted of."""
    parts = [f"waited on {target_words(stall.waited_on, _TARGET_MAX)}"] if stall.waited_on is not None else []
    if stall.holder is not None:
        at = "" if stall.holder.culprit is None else f" at {_spot(stall.holder.culprit, '', look)}"
        share = "" if stall.holder.share >= _WHOLE else f" for {share_words(stall.holder.share)}"
        others = f" and {len(stall.holders) - 1} more" if len(stall.holders) > 1 else ""
        parts.append(f"held by {thread_by_name(stall.holder.thread)}{share}{at}{others}")
    if stall.contributors and not parts:
        found = stall.contributors[:_CONTRIBUTORS_MAX]
        parts.append("of it " + ", ".join(map(contributor_words, found)))
    return [f"  {'; '.join(parts)}"] if parts else []


def _who(stall: Stall) -> list[str]:
    parts = [f"task {_name(stall.task)}"] if stall.task else []
    if stall.callback:
        parts.append(f"callback {_name(stall.callback)}")
    if stall.scene:
        parts.append(f"scene {_name(stall.scene)}")
    if stall.thread != "MainThread":
        parts.append(thread_by_name(stall.thread))
    return parts


def _in(process: str) -> list[str]:
    return [f"in {printable(process, _PROCESS_MAX)}"] if process else []


def _advice(advice: str, look: Look) -> list[str]:
    import textwrap

    lines = textwrap.wrap(printable(advice, _ADVICE_MAX), look.width - 7, break_on_hyphens=False)
    return [f"  {_paint('try:', _DIM, look) if i == 0 else '    '} {line}" for i, line in enumerate(lines)]


def _table(ranked: Sequence[Tally], look: Look) -> list[str]:
    head = f"  {'total':>9}  {'count':>6}  {'max':>9}  {'cause':<10}  where"
    rows = [
        f"  {format_duration(tally.total_ns):>9}  {tally.count:>6}  {format_duration(tally.max_ns):>9}"
        f"  {tally.cause.value:<10}  {_spot(tally.culprit, tally.title, look)}"
        for tally in ranked[:_ROWS_MAX]
    ]
    left_out = len(ranked) - _ROWS_MAX
    if left_out > 0:
        total_ns = sum(tally.total_ns for tally in ranked[_ROWS_MAX:])
        rows.append(f"  {format_duration(total_ns):>9}  in {count_of(left_out, 'more place')}")
    return [_paint(head, _DIM, look), *rows]


def _loop_line(loop: LoopHealth, look: Look) -> str:
    name = _paint(f"{_name(loop.thread)} ({_name(loop.kind)})", _DIM, look)
    delay = f"{format_duration(loop.delay_mean_ns)} on average, p99 {format_duration(loop.delay_p99_ns)}"
    return f"  {name} busy {loop.utilization:.0%}; an event waits {delay}"


def _run_length(session: Session) -> list[str]:
    if session.ended_wall_ns is None:
        return []
    return [f"in a run of {format_duration(max(session.ended_wall_ns - session.started_wall_ns, 0))}"]


def _spot(culprit: Culprit | None, title: str, look: Look) -> str:
    if culprit is None:
        return printable(title, _NAME_MAX) or no_line_words(Cause.UNKNOWN)
    return f"{_linked(culprit, look)} in {_name(culprit.function)}"


def _name(text: str) -> str:
    return printable(text, _NAME_MAX)


def _linked(culprit: Culprit, look: Look) -> str:
    shown = _paint(printable(place(culprit.file, culprit.line, look.folder), _PATH_MAX), _CYAN, look)
    url = file_url(culprit.file, culprit.line) if look.links and len(culprit.file) <= _PATH_MAX else None
    return shown if url is None else f"\x1b]8;;{url}\x1b\\{shown}\x1b]8;;\x1b\\"


def _tag(look: Look) -> str:
    return _paint(_TAG, _DIM, look)


def _paint(text: str, code: str, look: Look) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if look.colour else text
