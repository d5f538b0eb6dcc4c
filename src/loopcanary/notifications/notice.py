"""A notification in words. Pure: values in, text out.

It goes to screens and servers that others see: where, how long, why, what to do, which program. No paths but
the culprit's file, no values, no source beyond the call in the title.
"""

from __future__ import annotations

from dataclasses import dataclass

from loopcanary.model import Cause, Session, Severity, Stall, StallState
from loopcanary.model.units import format_duration
from loopcanary.model.wording import cause_words, confidence_word, count_of, printable, severity_word
from loopcanary.notifications.rate_limit import Permit, Withheld

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
        """What stands below the title."""
        return tuple(line for line in (self.cause, self.more, self.advice, self.place) if line)


def notice_of(permit: Permit[Stall], session: Session | None, now_ns: int) -> Notice:
    """`session`: the stall's, where it is known."""
    stall = permit.item
    return Notice(
        title=printable(f"{_what(stall)}: {stall.title}", _TITLE_MAX),
        cause=_cause(stall),
        more=_more(permit.withheld, permit.is_counted, now_ns),
        advice=_advice(stall.advice),
        place=_place(stall, session),
        is_urgent=stall.severity is Severity.ANR or stall.state is StallState.KILLED,
        stalls=permit.withheld.count + (not permit.is_counted),
    )


def over_of(stall: Stall, session: Session | None) -> Notice:
    """A stall that was told of while it went on is over."""
    length = format_duration(stall.duration_ns)
    title = printable(f"over after {length}: {stall.title}", _TITLE_MAX)
    return Notice(title=title, place=_place(stall, session), stalls=0)


def rest_of(withheld: Withheld) -> Notice:
    """What is told at the end of what nobody was told of."""
    total = format_duration(withheld.total_ns)
    return Notice(
        title=f"{count_of(withheld.count, 'more stall')} until the end, {total} in all",
        more=f"longest {format_duration(withheld.max_ns)}; `loopcanary report` has them all",
        stalls=withheld.count,
    )


def after_losses(notice: Notice, lost: int) -> Notice:
    """The notice, which says that some before it did not arrive."""
    if not lost:
        return notice
    from dataclasses import replace

    words = f"{count_of(lost, 'notification')} before this could not be delivered"
    return replace(notice, more="; ".join(filter(None, (notice.more, words))))


def _what(stall: Stall) -> str:
    length = format_duration(stall.duration_ns)
    if stall.state is StallState.KILLED:
        return f"killed while stalled for {length}"
    return f"{severity_word(stall.severity)} of {length}" + (
        " and going on" if stall.state is StallState.ONGOING else ""
    )


def _cause(stall: Stall) -> str:
    if stall.cause is Cause.UNKNOWN:
        return "cause unknown"
    return f"{cause_words(stall.cause)} ({stall.cause.value}, {confidence_word(stall.confidence)})"


def _more(withheld: Withheld, is_counted: bool, now_ns: int) -> str:
    """Where the stall itself had to wait, it is one of those counted."""
    others = withheld.count - is_counted
    if not others:
        return ""
    span = format_duration(max(now_ns - withheld.since_ns, 0))
    total, longest = format_duration(withheld.total_ns), format_duration(withheld.max_ns)
    if is_counted:
        return f"{withheld.count:,} of this line in the last {span}, {total} in all, longest {longest}"
    return f"{others:,} more of this line in the last {span}, {total} in all, longest {longest}"


def _advice(advice: str | None) -> str:
    """The first sentence."""
    if not advice:
        return ""
    sentence = advice.partition(". ")[0].rstrip(".")
    return printable(f"try: {sentence}", _ADVICE_MAX)


def _place(stall: Stall, session: Session | None) -> str:
    parts = [f"pid {stall.pid}"]
    if session is not None:
        name = " ".join(filter(None, (session.name, session.version, session.qualifier)))
        parts = [f"{printable(name, _NAME_MAX)} (pid {stall.pid}) on {printable(session.host, _NAME_MAX)}"]
    if stall.scene:
        parts.append(f"scene {printable(stall.scene, _NAME_MAX)}")
    if stall.thread != "MainThread":
        parts.append(f"thread {printable(stall.thread, _NAME_MAX)}")
    return ", ".join(parts)
