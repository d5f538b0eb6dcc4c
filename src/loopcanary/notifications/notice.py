"""A notification in words. Pure: values in, text out.

It goes to screens and servers that others see: where, how long, why, what to do, which program. No paths but
the culprit's file, no values, no source beyond the call in the title.
"""

from __future__ import annotations

from loopcanary.document.verdict import verdict
from loopcanary.document.wrapping import plain
from loopcanary.late_dataclass import dataclass
from loopcanary.model import Cause, Issue, Session, Severity, Stall, StallState
from loopcanary.model.units import format_duration
from loopcanary.notifications.rate_limit import Permit, Withheld
from loopcanary.registry import said_of
from loopcanary.words.causes import severity_words
from loopcanary.words.kinds import kind_words
from loopcanary.words.lags import evidence_of
from loopcanary.words.text import count_of, printable

_TITLE_MAX = 140
_NAME_MAX = 80
_ADVICE_MAX = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """What one notification says; every line is printable."""

    title: str
    cause: str = ""
    more: str = ""
    """What was withheld before."""
    advice: str = ""
    place: str = ""
    """Program, host, scene."""
    is_urgent: bool = False
    """An ANR, or a process that was killed."""
    stalls: int = 1
    """How many it speaks of."""

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(line for line in (self.cause, self.more, self.advice, self.place) if line)


def notice_of(permit: Permit[Issue], session: Session | None, now_ns: int) -> Notice:
    """`session`: the issue's, where it is known."""
    issue = permit.item
    title, why = said_of(issue, "notice") or (_title(issue), _why(issue))
    return Notice(
        title=printable(title, _TITLE_MAX),
        cause=why,
        more=_more(permit, now_ns),
        advice=_advice(issue.advice),
        place=_place(issue, session),
        is_urgent=issue.severity is Severity.ANR or issue.state is StallState.KILLED,
        stalls=permit.withheld.count + (not permit.is_counted),
    )


def over_of(issue: Issue, session: Session | None) -> Notice:
    """One that was notified in progress is over."""
    length = format_duration(issue.duration_ns)
    title = printable(f"over after {length}: {issue.title}", _TITLE_MAX)
    return Notice(title=title, place=_place(issue, session), stalls=0)


def rest_of(withheld: Withheld, details: str, noun: str = "stall") -> Notice:
    """The last notification, about those withheld. `details`: the command that shows them; `noun`: for all of
    them."""
    total = f", {format_duration(withheld.total_ns)} in all" if withheld.total_ns else ""
    longest = f"longest {format_duration(withheld.max_ns)}; " if withheld.max_ns else ""
    return Notice(
        title=f"{count_of(withheld.count, f'more {noun}')} until the end{total}",
        more=f"{longest}`{details}` has them all",
        stalls=withheld.count,
    )


def after_losses(notice: Notice, lost: int) -> Notice:
    """The notice, which says that some before it did not arrive."""
    if not lost:
        return notice
    from dataclasses import replace

    words = f"{count_of(lost, 'notification')} before this could not be delivered"
    return replace(notice, more="; ".join(filter(None, (notice.more, words))))


def stall_words(stall: Stall) -> tuple[str, str]:
    """Title and reason: how long the loop was blocked, in which line, and why."""
    return f"{_what(stall)}: {stall.title}", plain(verdict(stall.cause, stall))


def _title(issue: Issue) -> str:
    """Titles of most kinds have their figures."""
    what = kind_words(issue.kind)
    return issue.title if issue.title.startswith(what) else f"{what}: {issue.title}"


def _what(stall: Stall) -> str:
    length = format_duration(stall.duration_ns)
    if stall.cause is Cause.CRASH:
        return "crash"
    if stall.state is StallState.KILLED:
        why = stall.killed_by.reason if stall.killed_by is not None else None
        return f"killed while stalled for {length}" + (f" ({printable(why, _NAME_MAX)})" if why else "")
    of = "for" if stall.severity is Severity.ANR else "of"
    more = " and still in progress" if stall.state is StallState.ONGOING else ""
    return f"{severity_words(stall.severity)} {of} {length}{more}"


def _why(issue: Issue) -> str:
    """Its figures against their limit; and where the thread was held, as far as stalls say."""
    culprit = issue.culprit
    held = plain(verdict(issue.cause, None)) if issue.cause is not Cause.UNKNOWN else ""
    if culprit is not None:
        file = culprit.file.rpartition("/")[2]
        held = f"{held or 'the thread was held'} in {culprit.qualname} ({file}:{culprit.line})"
    figures = evidence_of(issue)[:1]
    return printable("; ".join(filter(None, (*figures, held))), _ADVICE_MAX)


def _more(permit: Permit[Issue], now_ns: int) -> str:
    """Where the issue itself had to wait, it is one of those counted."""
    withheld, is_counted = permit.withheld, permit.is_counted
    others = withheld.count - is_counted
    if not others:
        return ""
    span = format_duration(max(now_ns - withheld.since_ns, 0))
    total, longest = format_duration(withheld.total_ns), format_duration(withheld.max_ns)
    lengths = f", {total} in all, longest {longest}" if withheld.total_ns else ""
    if is_counted:
        return f"{withheld.count:,} of this bug in the last {span}{lengths}"
    return f"{others:,} more of this bug in the last {span}{lengths}"


def _advice(advice: str | None) -> str:
    """The first sentence."""
    if not advice:
        return ""
    sentence = advice.partition(". ")[0].rstrip(".")
    return printable(f"try: {sentence}", _ADVICE_MAX)


def _place(issue: Issue, session: Session | None) -> str:
    parts = [f"pid {issue.pid}"]
    if session is not None:
        name = " ".join(filter(None, (session.name, session.version, session.qualifier)))
        parts = [f"{printable(name, _NAME_MAX)} (pid {issue.pid}) on {printable(session.host, _NAME_MAX)}"]
    if issue.scene:
        parts.append(f"scene {printable(issue.scene, _NAME_MAX)}")
    if issue.thread != "MainThread":
        parts.append(f"thread {printable(issue.thread, _NAME_MAX)}")
    return ", ".join(parts)
