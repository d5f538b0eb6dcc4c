"""The report for people at a terminal."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rich.text import Text

from loopcanary.model import SessionEnd, StallScope, StallState
from loopcanary.model.units import format_duration
from loopcanary.model.wording import count_of, printable, severity_word
from loopcanary.report import text_pieces as pieces
from loopcanary.report.anywhere import ANYWHERE, is_anywhere
from loopcanary.report.text_pieces import INDENT, Page, name
from loopcanary.report.times import moment, span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import Console

    from loopcanary.model import LoopHealth, Session, Stall
    from loopcanary.model.search import StallGroup
    from loopcanary.report.model import Report

_SESSIONS_MAX = 6
_LATEST_MAX = 10
_LATE_NS = 1_000_000
_ROWS_IN_GROUP, _ROWS_IN_STALL = 8, 100
_SCOPE_WORDS = {StallScope.CALLBACK: "one callback", StallScope.TURN: "a whole turn"}
_STATE_WORDS = {StallState.ENDED: "", StallState.ONGOING: "going on", StallState.KILLED: "killed in it"}
_SEVERITY_STYLES = {"stall": "yellow", "hang": "red", "ANR": "bold red"}


def show_report(report: Report, console: Console) -> None:
    """Groups, latest stalls, sessions."""
    page = page_of(console)
    _print(console, _overview(report, page))


def show_group(report: Report, console: Console) -> None:
    """One bug: its sums, its longest stall in full, its latest stalls."""
    page = page_of(console)
    group = report.groups[0]
    _print(console, [*_group_head("", group, page), *_indented([_group_times(group)]), Text()])
    if worst := report.worst.get(group.fingerprint):
        _print(console, [Text("The longest one", "bold"), *_stall(worst, _session(report, worst), page)])
    _print(console, _latest(report))


def show_stall(report: Report, console: Console) -> None:
    """One stall with everything that is known of it."""
    stall = report.stalls[0]
    _print(console, _stall(stall, _session(report, stall), page_of(console)))


def page_of(console: Console) -> Page:
    """What the console can show."""
    return Page(width=min(console.width, 120), folder=_folder(), unicode=console.encoding.startswith("utf"))


def _folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - a text is wanted, and "" where the folder is gone
    except OSError:
        return ""


def _print(console: Console, lines: Iterable[Text]) -> None:
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False)


def _session(report: Report, stall: Stall) -> Session | None:
    return next((session for session in report.sessions if session.id == stall.session), None)


# ---- the report -------------------------------------------------------------------------------


def _overview(report: Report, page: Page) -> Iterator[Text]:
    sums = report.sums
    yield Text.assemble(
        (f"{count_of(sums.stalls, 'stall')} in {count_of(sums.groups, 'place')}", "bold"),
        f", {format_duration(sums.total_ns)} in all",
    )
    yield Text()
    for number, group in enumerate(report.groups, start=1):
        yield from _group(number, group, report.worst.get(group.fingerprint), page)
        yield Text()
    if sums.groups > len(report.groups):
        yield Text(
            f"and {count_of(sums.groups - len(report.groups), 'more place')} (--limit 0 shows all)", "dim"
        )
        yield Text()
    yield from _latest(report)
    yield Text()
    yield from _sessions(report.sessions)


def _group(number: int, group: StallGroup, worst: Stall | None, page: Page) -> Iterator[Text]:
    yield from _group_head(str(number), group, page)
    yield from _indented(_group_facts(group, worst, page))
    yield from _indented([Text.assemble(("more ", "dim"), f"loopcanary show {printable(group.fingerprint)}")])


def _group_head(number: str, group: StallGroup, page: Page) -> Iterator[Text]:
    sums = f"{format_duration(group.total_ns)}, {group.count:,} x"
    title = printable(group.title, max(page.width - len(INDENT) - len(sums) - 2, 20))
    gap = max(page.width - len(INDENT) - len(title) - len(sums), 2)
    yield Text.assemble(
        (f"{number:<{len(INDENT)}}", "dim"), (title, "bold"), " " * gap, (sums, "bold yellow")
    )


def _group_times(group: StallGroup) -> Text:
    seen = span(group.first_wall_ns, group.last_wall_ns)
    return Text(f"median {format_duration(group.p50_ns)}, max {format_duration(group.max_ns)}; {seen}", "dim")


def _group_facts(group: StallGroup, worst: Stall | None, page: Page) -> Iterator[Text]:
    if is_anywhere(group):
        yield Text(ANYWHERE, "dim")
    else:
        yield from pieces.where(group.culprit, page)
    yield pieces.verdict(group.cause, worst.confidence if worst and worst.cause is group.cause else None)
    yield _group_times(group)
    if worst is None:
        return
    yield from pieces.holder(worst, page)
    yield from pieces.ledger(worst.ledger, worst.duration_ns, page)
    if worst.stacks and not is_anywhere(group):
        heaviest = max(worst.stacks, key=lambda stack: stack.weight_ns)
        share = f"{format_duration(heaviest.weight_ns)} of {format_duration(worst.duration_ns)}"
        yield Text(f"stack that held {share}", "dim")
        yield from pieces.stack(heaviest, page, most=_ROWS_IN_GROUP)
    yield from pieces.advice(worst.advice, page)


def _latest(report: Report) -> Iterator[Text]:
    shown = report.stalls[:_LATEST_MAX]
    numbers = {group.fingerprint: number for number, group in enumerate(report.groups, start=1)}
    yield Text("Latest", "bold")
    for stall in shown:
        number = numbers.get(stall.fingerprint, "-")
        word = severity_word(stall.severity)
        state = _STATE_WORDS[stall.state]
        yield Text.assemble(
            (f"{number!s:<{len(INDENT)}}", "dim"),
            moment(stall.began_wall_ns),
            (f"  {word:<5} {format_duration(stall.duration_ns):>8}", _SEVERITY_STYLES[word]),
            f"  {printable(stall.id, 48)}",
            (f"  {state}" if state else "", "bold red"),
        )
    if report.sums.stalls > len(shown):
        yield Text(f"{INDENT}and {report.sums.stalls - len(shown):,} before", "dim")


def _sessions(sessions: Iterable[Session]) -> Iterator[Text]:
    known = list(sessions)
    if not known:
        return
    yield Text("Sessions", "bold")
    for session in known[:_SESSIONS_MAX]:
        yield from _indented(_session_lines(session))
    if len(known) > _SESSIONS_MAX:
        yield Text(f"{INDENT}and {len(known) - _SESSIONS_MAX:,} before", "dim")


def _session_lines(session: Session) -> Iterator[Text]:
    who = f"{name(session.name)} (pid {session.pid}, {name(session.python)})"
    yield Text.assemble(f"{moment(session.started_wall_ns)}  {who}, ", _end_words(session))
    for loop in session.loops:
        if loop.turns:
            yield Text("  " + _loop_words(loop), "dim")


def _end_words(session: Session) -> Text:
    if session.end is SessionEnd.RUNNING:
        return Text("running", "green")
    length = format_duration(max((session.ended_wall_ns or 0) - session.started_wall_ns, 0))
    if session.end is SessionEnd.KILLED:
        return Text(f"killed after {length}", "bold red")
    return Text(f"ran {length}")


def _loop_words(loop: LoopHealth) -> str:
    delay = f"{format_duration(loop.delay_mean_ns)} on average, p99 {format_duration(loop.delay_p99_ns)}"
    return f"{name(loop.thread)} ({name(loop.kind)}) busy {loop.utilization:.0%}; an event waits {delay}"


def _indented(lines: Iterable[Text]) -> Iterator[Text]:
    return (Text.assemble(INDENT, line) for line in lines)


# ---- one stall ---------------------------------------------------------------------------------


def _stall(stall: Stall, session: Session | None, page: Page) -> Iterator[Text]:
    word = severity_word(stall.severity)
    yield Text.assemble(
        (f"{word} {format_duration(stall.duration_ns)}", _SEVERITY_STYLES[word]),
        "  ",
        (printable(stall.title, page.width - 24), "bold"),
    )
    if stall.state is StallState.KILLED:
        yield Text(f"{INDENT}the process was killed in it", "bold red")
    elif stall.state is StallState.ONGOING:
        yield Text(f"{INDENT}it is still going on", "bold red")
    yield from _indented(_verdict(stall, page))
    yield Text()
    yield from _indented(_circumstances(stall, session))
    for weighted in stall.stacks:
        yield Text()
        yield Text.assemble(INDENT, (f"stack that held {format_duration(weighted.weight_ns)}", "bold"))
        yield from _indented(pieces.stack(weighted, page, most=_ROWS_IN_STALL))
    for view in stall.threads:
        yield Text()
        yield from _indented(pieces.thread(view, page))
    yield Text()


def _verdict(stall: Stall, page: Page) -> Iterator[Text]:
    yield from pieces.where(stall.culprit, page)
    yield pieces.verdict(stall.cause, stall.confidence)
    for line in stall.evidence:
        yield from pieces.labelled("- ", printable(line, 1_000), page)
    yield from pieces.blocker(stall)
    yield from pieces.holder(stall, page)
    yield from pieces.ledger(stall.ledger, stall.duration_ns, page)
    yield from pieces.advice(stall.advice, page)


def _circumstances(stall: Stall, session: Session | None) -> Iterator[Text]:
    samples = count_of(stall.samples, "sample")
    dropped = f", {stall.dropped_samples:,} dropped" if stall.dropped_samples else ""
    facts = [
        ("began", f"{moment(stall.began_wall_ns)}, threshold {format_duration(stall.threshold_ns)}"),
        ("loop", f"{name(stall.loop)} on thread {name(stall.thread)}, {_SCOPE_WORDS[stall.scope]}"),
        ("callback", name(stall.callback) if stall.callback else None),
        ("task", name(stall.task) if stall.task else None),
        ("scene", name(stall.scene) if stall.scene else None),
        (
            "late",
            f"it began {format_duration(stall.queue_ns)} after its time"
            if stall.queue_ns >= _LATE_NS
            else None,
        ),
        ("seen", f"{samples} over {stall.coverage:.0%} of it, {name(stall.engine)} engine{dropped}"),
        ("process", _process(stall, session)),
        ("bug", printable(stall.fingerprint)),
        ("id", printable(stall.id)),
    ]
    for label, value in facts:
        if value:
            yield Text.assemble((f"{label:<9}", "dim"), value)


def _process(stall: Stall, session: Session | None) -> str:
    if session is None:
        return f"pid {stall.pid}"
    version = f" {name(session.version)}" if session.version else ""
    return f"{name(session.name)}{version}, pid {stall.pid} on {name(session.host)}, {name(session.python)}"
