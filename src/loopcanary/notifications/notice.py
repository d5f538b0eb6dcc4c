"""A notification in words. Pure: values in, text out.

It goes to screens and servers that others see: where, how long, why, what to do, which program. No paths but
the culprit's file, no values, no source beyond the call in the title.
"""

from __future__ import annotations

from dataclasses import replace

from loopcanary.late_dataclass import dataclass
from loopcanary.model import Issue, Session, Severity
from loopcanary.model.units import format_duration
from loopcanary.notifications.rate_limit import Permit, Withheld
from loopcanary.protocols.kinds import kind_of
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

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(line for line in (self.cause, self.more, self.advice, self.place) if line)


def notice_of(permit: Permit[Issue], session: Session | None, now_ns: int) -> Notice:
    """`session`: the issue's, where it is known."""
    issue = permit.item
    title, why = kind_of(issue).notice(issue)
    return Notice(
        title=printable(title, _TITLE_MAX),
        cause=why,
        more=_more(permit, now_ns),
        advice=_advice(issue.advice),
        place=_place(issue, session),
        is_urgent=issue.severity is Severity.ANR or issue.state.is_of_process,
        stalls=permit.withheld.count + (not permit.is_counted),
    )


def over_of(issue: Issue, session: Session | None) -> Notice:
    """The notice that a hang which was notified in progress is over."""
    length = format_duration(issue.duration_ns)
    title = printable(f"ended after {length}: {issue.title}", _TITLE_MAX)
    return Notice(title=title, place=_place(issue, session), stalls=0)


def rest_of(withheld: Withheld, details: str, noun: str = "stall") -> Notice:
    """The last notification, about those withheld. `details`: the command that shows them; `noun`: for all of
    them."""
    total = f", {format_duration(withheld.total_ns)} in all" if withheld.total_ns else ""
    longest = f"longest {format_duration(withheld.max_ns)}; " if withheld.max_ns else ""
    return Notice(
        title=f"{count_of(withheld.count, f'more {noun}')} until the end{total}",
        more=f"{longest}`{details}` shows them all",
        stalls=withheld.count,
    )


def after_losses(notice: Notice, lost: int) -> Notice:
    """The notice, which says that some before it did not arrive."""
    if not lost:
        return notice
    words = f"{count_of(lost, 'notification')} before this could not be delivered"
    return replace(notice, more="; ".join(filter(None, (notice.more, words))))


def _more(permit: Permit[Issue], now_ns: int) -> str:
    """What was withheld before; an issue that had to wait itself is one of those counted."""
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
        name = " ".join(filter(None, (session.name, session.version, *session.labels.values())))
        parts = [f"{printable(name, _NAME_MAX)} (pid {issue.pid}) on {printable(session.host, _NAME_MAX)}"]
    if issue.scene:
        parts.append(f"scene {printable(issue.scene, _NAME_MAX)}")
    if issue.thread != "MainThread":
        parts.append(f"thread {printable(issue.thread, _NAME_MAX)}")
    return ", ".join(parts)
