"""An issue that is no stall with everything that is known of it, as lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from loopcanary.model.issues.issue import is_news
from loopcanary.model.issues.lags import IdleLag, InputLag, Jank
from loopcanary.model.issues.slow_method import SlowMethod
from loopcanary.model.issues.startup import Startup
from loopcanary.model.units import format_duration, format_number
from loopcanary.report import text_pieces as pieces
from loopcanary.report.frame_words import fps_words, frozen_words, level_words
from loopcanary.report.history import bars
from loopcanary.report.text_pieces import INDENT, Page, name
from loopcanary.report.text_tree import call_lines, phase_lines
from loopcanary.report.times import age, exactly, moment, span
from loopcanary.words.lags import evidence_of
from loopcanary.words.text import count_of, printable
from loopcanary.words.waiting import thread_by_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from loopcanary.model import LagIssue, Session, Stall
    from loopcanary.model.search import IssueGroup
    from loopcanary.report.model import IssueDetails, Report

_ROWS_MAX = 100
_STACKS_MAX = 8
_CELLS_MAX = 60
_LABEL = 9


def group_lines(report: Report, page: Page) -> Iterator[Text]:
    """What the issues of one group tell together."""
    group = report.issue_groups[0]
    yield Text(printable(group.worst.title, page.width), "bold")
    yield from _indented(_sums(group, report, page))
    yield Text()


def _sums(group: IssueGroup, report: Report, page: Page) -> Iterator[Text]:
    worst = group.worst
    lengths = f"median {format_duration(group.p50_ns)}, max {format_duration(worst.duration_ns)}"
    yield Text.assemble(
        (f"{format_duration(group.total_ns)} in {count_of(group.count, 'issue')}", "bold yellow"),
        f", {lengths}, {worst.cause.value}",
    )
    last = age(group.last_wall_ns, report.generated_wall_ns)
    ago = "just now" if last == "now" else f"the last {last} ago"
    yield _fact("seen", f"{span(group.first_wall_ns, group.last_wall_ns)}, {ago}")
    if group.count > 1 and group.last_wall_ns > group.first_wall_ns:
        marks = sorted((issue.began_wall_ns, issue.duration_ns) for issue in report.issues)
        cells = max(min(page.width - 2 * len(INDENT) - _LABEL, _CELLS_MAX), 10)
        if drawn := bars(marks, cells, unicode=page.unicode):
            yield Text.assemble(("time     ", "dim"), (drawn, "yellow"))


def issue_lines(issue: LagIssue, session: Session | None, report: Report, page: Page) -> Iterator[Text]:
    """Verdict, circumstances and figures; then its worst frames, or what came before it, with stacks."""
    details = report.issue_details
    yield Text.assemble(
        (f"{issue.kind.value} {format_duration(issue.duration_ns)}", "yellow"),
        "  ",
        (printable(issue.title, page.width - 24), "bold"),
    )
    yield from _indented(_verdict(issue, page))
    yield Text()
    yield from _indented(_circumstances(issue, session, details, page))
    shown: set[str] = set()
    if isinstance(issue, Jank):
        yield from _worst_frames(issue, details, shown, page)
    if isinstance(issue, InputLag):
        yield from _titled("what the thread did before it", _before(issue, page))
    if isinstance(issue, Startup):
        yield from _titled("phases", phase_lines(issue, page))
    if isinstance(issue, SlowMethod):
        yield from _titled("calls", call_lines(issue, page))
    yield from _stalls(issue, details, shown, page)
    if not shown:
        yield from _own_stacks(issue, page)
    yield Text()


def _verdict(issue: LagIssue, page: Page) -> Iterator[Text]:
    if issue.culprit is not None:
        yield from pieces.where(issue.culprit, issue.cause, page)
    yield pieces.verdict(issue.cause, None)
    for line in evidence_of(issue):
        yield from pieces.labelled("- ", printable(line, 1_000), page)
    yield from pieces.advice(issue.advice, page)


def _circumstances(
    issue: LagIssue, session: Session | None, details: IssueDetails | None, page: Page
) -> Iterator[Text]:
    parts = details.parts if details is not None else ()
    facts = [
        ("began", f"{moment(issue.began_wall_ns)}, lasted {format_duration(issue.duration_ns)}"),
        ("loop", f"{name(issue.loop)} on {thread_by_name(issue.thread)}"),
        ("scene", name(issue.scene) if issue.scene else None),
        *_figures(issue),
        ("process", _process(issue, session)),
        ("grouped", f"by {grouped_words(parts)}" if parts else None),
        ("bug", printable(issue.fingerprint)),
        ("id", printable(issue.id)),
    ]
    for label, value in facts:
        if value:
            yield from pieces.labelled(f"{label:<{_LABEL}}", value, page)


def grouped_words(parts: Iterable[str]) -> str:
    """What a fingerprint is made of: `kind jank, scene boss`."""
    return ", ".join(printable(part, 200).replace("=", " ", 1) for part in parts)


def _figures(issue: LagIssue) -> list[tuple[str, str | None]]:
    if isinstance(issue, Jank):
        figures = issue.figures
        frames = f"{fps_words(figures)}, {count_of(figures.frames, 'frame')}"
        return [
            ("frames", f"{frames} in {format_duration(figures.frame_ns)}, {figures.dropped:,} dropped"),
            ("levels", level_words(figures) or None),
            ("late", f"{format_number(figures.hitch_ms_per_s)} ms in each second"),
            ("frozen", frozen_words(figures) or None),
        ]
    if isinstance(issue, InputLag):
        waited = format_duration(issue.queued_ns)
        handled = format_duration(max(0, issue.duration_ns - issue.queued_ns))
        return [("event", name(issue.event)), ("waited", f"{waited}, then handled for {handled}")]
    if isinstance(issue, IdleLag):
        return [("handler", name(issue.handler)), ("runs", f"{issue.runs:,}")]
    limit = f"{format_duration(issue.threshold_ns)}{'' if is_news(issue) else ', and it was within it'}"
    if isinstance(issue, Startup):
        return [("start", issue.start.value), ("program", name(issue.program)), ("limit", limit)]
    return [("limit", limit)]


def _process(issue: LagIssue, session: Session | None) -> str:
    if session is None:
        return f"pid {issue.pid}"
    version = f" {name(session.version)}" if session.version else ""
    return f"{name(session.name)}{version}, pid {issue.pid} on {name(session.host)}, {name(session.python)}"


def _worst_frames(jank: Jank, details: IssueDetails | None, shown: set[str], page: Page) -> Iterator[Text]:
    known = details.stalls if details is not None else {}
    for number, frame in enumerate(jank.worst):
        if number == 0:
            yield Text()
            yield Text.assemble(INDENT, ("worst frames", "bold"))
        late = f"dropped {frame.dropped:,}, began {exactly(frame.began_wall_ns)}"
        yield Text.assemble(INDENT, (f"{format_duration(frame.duration_ns):>8}", "yellow"), f"  {late}")
        for stall_id in frame.stalls:
            yield from _doubly_indented(_stall(stall_id, known.get(stall_id), shown, page))
        if not frame.stalls:
            yield Text(f"{INDENT}{INDENT}no stall in it: nothing single was as long as the threshold", "dim")


def _stalls(issue: LagIssue, details: IssueDetails | None, shown: set[str], page: Page) -> Iterator[Text]:
    """Those that have not been shown with their frames."""
    known = details.stalls if details is not None else {}
    left = [stall_id for stall_id in issue.stalls if stall_id not in shown]
    if left:
        yield Text()
        title = "more stalls in that time" if shown else "stalls in that time"
        yield Text.assemble(INDENT, (title, "bold"))
    for stall_id in left:
        yield from _indented(_stall(stall_id, known.get(stall_id), shown, page))


def _stall(stall_id: str, stall: Stall | None, shown: set[str], page: Page) -> Iterator[Text]:
    if stall is None:
        yield Text.assemble(f"stall {printable(stall_id, 60)}", ("  not kept any more", "dim"))
        return
    again = stall_id in shown
    yield Text.assemble(
        f"stall {printable(stall_id, 60)}  ",
        (format_duration(stall.duration_ns), "yellow"),
        f"  {stall.cause.value}",
        ("  (see above)" if again else "", "dim"),
    )
    if again:
        return
    shown.add(stall_id)
    if stall.callback:
        yield Text.assemble(("  in ", "dim"), name(stall.callback))
    for weighted in stall.stacks[:_STACKS_MAX]:
        yield Text(f"  stack that held {format_duration(weighted.weight_ns)}", "dim")
        yield from (Text.assemble("  ", line) for line in pieces.stack(weighted, page, most=_ROWS_MAX))


def _own_stacks(issue: LagIssue, page: Page) -> Iterator[Text]:
    """What the issue itself has kept: for when its stalls are gone."""
    for weighted in issue.stacks:
        held = f"stack that held {format_duration(weighted.weight_ns)}"
        yield from _titled(held, pieces.stack(weighted, page, most=_ROWS_MAX))


def _before(lag: InputLag, page: Page) -> Iterator[Text]:
    for one in lag.before:
        at = Text.assemble(" at ", pieces.spot(one.culprit, page)) if one.culprit else Text()
        yield Text.assemble((f"{format_duration(one.duration_ns):>8}", "yellow"), f"  {name(one.name)}", at)
        if one.stall:
            yield Text(f"{'':>8}  stall {printable(one.stall, 60)}", "dim")


def latest(report: Report, *, most: int = 10) -> Iterator[Text]:
    """The latest issues of a group, with their ids."""
    yield Text("Latest", "bold")
    for issue in report.issues[:most]:
        yield Text.assemble(
            INDENT,
            moment(issue.began_wall_ns),
            (f"  {format_duration(issue.duration_ns):>8}", "yellow"),
            f"  {printable(issue.id, 60)}",
        )
    before = report.issue_groups[0].count - len(report.issues[:most])
    if before > 0:
        yield Text(f"{INDENT}and {before:,} before", "dim")


def _fact(label: str, words: str) -> Text:
    return Text.assemble((f"{label:<{_LABEL}}", "dim"), words)


def _titled(title: str, lines: Iterable[Text]) -> Iterator[Text]:
    listed = list(lines)
    if listed:
        yield Text()
        yield Text.assemble(INDENT, (title, "bold"))
        yield from _indented(listed)


def _indented(lines: Iterable[Text]) -> Iterator[Text]:
    return (Text.assemble(INDENT, line) for line in lines)


def _doubly_indented(lines: Iterable[Text]) -> Iterator[Text]:
    return _indented(_indented(lines))
