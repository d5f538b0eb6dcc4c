"""The words of console, reports and pages about a verdict: line, cause, what was waited for, advice."""

from __future__ import annotations

from loopcanary.document.makers import NAME_MAX, Said, dim, line, name, place_of, prose, said, strong
from loopcanary.document.parts import Block, Piece, Pieces, SourceLine, Tone
from loopcanary.model import Cause, Culprit, Holder, Issue, Severity, Stall, StallScope, StallState
from loopcanary.model.units import format_duration
from loopcanary.model.waiting import THREAD_END, StateWord
from loopcanary.words.causes import (
    cause_words,
    confidence_word,
    no_line_words,
    severity_words,
    struck_words,
)
from loopcanary.words.text import library_path
from loopcanary.words.waiting import (
    did_words,
    holder_label,
    holder_words,
    second_cause_words,
    target_words,
)

SEVERITY_TONES = {Severity.STALL: Tone.NUMBER, Severity.HANG: Tone.WARN, Severity.ANR: Tone.ALARM}
_STATE_WORDS = {
    StallState.ENDED: "",
    StallState.ONGOING: "still in progress",
    StallState.KILLED: "killed during this stall",
    StallState.CRASHED: "crashed",
}


def ended_words(issue: Issue) -> str:
    """How it ended with its process, or that it goes on; empty: it ended by itself."""
    return _STATE_WORDS[issue.state]


def severity(stall: Stall) -> Piece:
    """`hang 1.20 s`, `not responding (ANR) 7.31 s`, `crash 0.31 s into this callback`."""
    if stall.state is StallState.CRASHED:
        into = f" {format_duration(stall.duration_ns)} into this {stall.scope.value}"
        return Piece("crash" + (into if stall.scope is not StallScope.THREAD else ""), Tone.ALARM)
    words = f"{severity_words(stall.severity)} {format_duration(stall.duration_ns)}"
    return Piece(words, SEVERITY_TONES[stall.severity])


def spot(culprit: Culprit | None, cause: Cause) -> Pieces:
    """The place in a few words, or why there is none."""
    if culprit is None:
        return said(dim(no_line_words(cause)))
    return said(_place(culprit), " in ", name(culprit.function))


def spot_held(holder: Holder, cause: Cause) -> Pieces:
    """The place where it was held."""
    return said(spot(holder.culprit, cause), f" {did_words(holder, cause)}")


def _place(culprit: Culprit) -> Piece:
    shown = "" if culprit.in_app else library_path(culprit.file)
    return place_of(culprit.file, culprit.line, is_own=culprit.in_app, shown=shown)


def where(culprit: Culprit | None, cause: Cause, label: str = "") -> tuple[Block, ...]:
    """The culprit, and its line with the call underlined; for a line not at fault, why it is shown."""
    if culprit is None:
        return (line(dim(no_line_words(cause))),)
    foreign = dim("" if culprit.in_app else " (not your code)")
    lead: Said = f"{label} " if label else ""
    place = line(lead, _place(culprit), " in ", name(culprit.qualname), foreign)
    if struck := struck_words(cause):
        return place, line(dim(f"  {struck}"))
    if not culprit.source:
        return (place,)
    return place, SourceLine(culprit.source, culprit.column, culprit.end_column)


def where_held(culprit: Culprit | None, cause: Cause, holder: Holder | None) -> tuple[Block, ...]:
    """The line to change: that of the thread that held what was waited for, if it is known."""
    if holder is None or holder.culprit is None:
        return where(culprit, cause)
    held = where(holder.culprit, cause, "ran at" if holder.lock == THREAD_END else "held at")
    if culprit is None:
        return held
    if holder.culprit.source is None:
        return *held, *where(culprit, cause, "waited at")
    return *held, line(dim("waited at "), spot(culprit, cause))


def verdict(cause: Cause, stall: Stall | None) -> Pieces:
    """The cause, how sure it is, what it means, and what else there was, of a stall if it has this cause."""
    if stall is None or stall.cause is not cause:
        return said(strong(cause.value), f": {cause_words(cause)}")
    sure = "" if cause is Cause.UNKNOWN else f" ({confidence_word(stall.confidence)})"
    second = second_cause_words(stall)
    deadlock = "; a deadlock" if stall.state_word is StateWord.DEADLOCKED else ""
    beside = strong(deadlock + (f"; {second}" if second else ""))
    return said(strong(cause.value), f"{sure}: {cause_words(cause, stall)}", beside)


def waited_on(stall: Stall) -> Pieces | None:
    """The file, peer or child that it waited for."""
    return None if stall.waited_on is None else said(target_words(stall.waited_on, NAME_MAX * 2))


def holders_of(stall: Stall) -> tuple[Holder, ...]:
    """The threads that held the GIL or lock."""
    return stall.holders or ((stall.holder,) if stall.holder is not None else ())


def holder_fact(holder: Holder, cause: Cause, *, is_placed: bool = False) -> tuple[str, Pieces]:
    """The thread that held it, and where, unless the place is shown already."""
    at = () if holder.culprit is None or is_placed else said(" at ", spot(holder.culprit, cause))
    return holder_label(holder), said(holder_words(holder), at)


def advice(text: str | None, limit: int = 1_000) -> Pieces | None:
    """Its whole sentences, as far as they fit."""
    if text is not None and len(text) > limit and (end := text.rfind(". ", 0, limit)) > 0:
        text = text[: end + 1]
    return said(prose(text, limit)) if text else None
