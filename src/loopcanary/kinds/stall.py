"""Stalls: what only they have, and how a store keeps one.

A stall of code that computes has hundreds of stacks of dozens of frames, which are a hundred different ones.
Written out they are 640 KB and most of what storing a stall costs the watched process. So a store has each
frame once, and stacks have numbers of frames: 30 KB.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from loopcanary.document.makers import (
    NAME_MAX,
    Said,
    dim,
    facts,
    line,
    name,
    number,
    part,
    place_of,
    prose,
    said,
    strong,
)
from loopcanary.document.parts import (
    Block,
    Facts,
    Head,
    Indented,
    Items,
    Piece,
    Pieces,
    Table,
    TableRow,
    Tone,
)
from loopcanary.document.stacks import frames_of
from loopcanary.document.surroundings import ledger, surroundings_words
from loopcanary.document.times import moment
from loopcanary.document.trees import tree_of_calls
from loopcanary.document.verdict import (
    ended_words,
    holder_fact,
    holders_of,
    severity,
    spot,
    spot_held,
    verdict,
    waited_on,
    where_held,
)
from loopcanary.document.wrapping import plain
from loopcanary.model.calls import TracedCalls
from loopcanary.model.stack_frame import StackFrame
from loopcanary.model.stall import (
    Grade,
    Portion,
    Severity,
    Stall,
    StallScope,
    StallState,
    ThreadView,
    WeightedStack,
)
from loopcanary.model.units import format_duration
from loopcanary.model.waiting import Contributor, StateWord
from loopcanary.protocols.kinds import Kind
from loopcanary.wire import Json, WireError, from_wire, to_wire
from loopcanary.words.android import LOOPER
from loopcanary.words.causes import severity_words
from loopcanary.words.earlier import earlier_rows
from loopcanary.words.endings import BY_EXIT, killed_by_words
from loopcanary.words.text import count_of, printable
from loopcanary.words.traced import compared_words
from loopcanary.words.waiting import held_in, share_words, state_words, thread_by_name

_LATE_NS = 1_000_000
_EARLIER_MAX = 12
_CONTRIBUTORS_MAX = 8
_HOLDERS_MAX = 5
_SITES_MAX = 2
_REASON_MAX = 80
_SCOPE_WORDS = {StallScope.CALLBACK: "one callback", StallScope.TURN: "a whole turn"}
_GRADE_WORDS = {
    Grade.STRONG: "strong evidence",
    Grade.FAIR: "fair evidence",
    Grade.WEAK: "weak evidence: few samples, or one sample decides",
}

_STATES = {
    StateWord.STOPPED: "the thread was stopped, or the machine was frozen",
    StateWord.STARVED: "the thread was ready to run, but got no CPU",
    StateWord.DEADLOCKED: "no thread can release what it waits for",
    StateWord.PEER_DEAD: "the peer does not answer",
    StateWord.HUNG: "the thread stays on one line, and makes no progress",
    StateWord.SLOW: "the thread makes progress, but takes long",
}


class StallKind(Kind[Stall]):
    """A callback or turn longer than the threshold. The diagnosis makes its fingerprint."""

    issue_class = Stall
    words = "stall"
    noun = "stall"

    def evidence(self, stall: Stall) -> tuple[str, ...]:
        """What its samples show."""
        return stall.evidence

    def notice(self, stall: Stall) -> tuple[str, str]:
        """Title and reason: how long the loop was blocked, in which line, and why."""
        return f"{_what(stall)}: {stall.title}", plain(verdict(stall.cause, stall))

    def lead(self, stall: Stall) -> Piece:
        return severity(stall)

    def why(self, stall: Stall) -> Iterator[Block]:
        """The line to change, the cause, what was waited for, where the time went."""
        if state := ended_words(stall):
            ended_by = killed_by_words(stall.killed_by) if stall.state.is_of_process else ""
            yield line(Piece(f"{state}: {ended_by}" if ended_by else state, Tone.ALARM))
        yield from where_held(stall.culprit, stall.cause, stall.holder)
        yield line(verdict(stall.cause, stall))
        if stall.evidence:
            yield Items(tuple(said(prose(words)) for words in stall.evidence))
        yield facts(
            ("call", _call(stall)),
            ("waited on", waited_on(stall)),
            *(
                holder_fact(holder, stall.cause, is_placed=holder == stall.holder)
                for holder in holders_of(stall)[:_HOLDERS_MAX]
            ),
            ("and by", _more_holders(stall)),
        )
        yield from ledger(stall.ledger, stall.duration_ns)

    def parts(self, stall: Stall) -> Iterator[Block]:
        """What it consisted of, the callbacks of its turn, and what the loop ran before."""
        yield from part("what it consisted of", _portions(stall))
        yield from part("callbacks of the turn", _contributors(stall))
        yield from tree_of_calls(stall.calls or TracedCalls(), compared_words(stall))
        yield from part("shortly before", _earlier(stall), is_aside=True)

    def after(self, stall: Stall) -> Iterator[Block]:
        """The other threads of the process, as they were when the stall became a hang."""
        for view in stall.threads:
            yield from _thread(view)

    def figures(self, stall: Stall) -> Facts:
        """How its loop was blocked, and how well it was seen."""
        late = ""
        if stall.queue_ns >= _LATE_NS:
            late = f"it began {format_duration(stall.queue_ns)} after it was due"
        over = f", threshold {format_duration(stall.threshold_ns)}" if stall.threshold_ns else ""
        began = f"{moment(stall.began_wall_ns)}{over}"
        return facts(
            ("began", began),
            _how_ended(stall),
            ("state", f"{stall.state_word.value}: {_STATES[stall.state_word]}" if stall.state_word else None),
            ("loop", _loop(stall)),
            ("startup", "before the loop first waited" if stall.startup else None),
            ("callback", name(stall.callback)),
            ("task", name(stall.task)),
            ("late", late),
            ("seen", _seen(stall)),
            ("around", surroundings_words(stall.surroundings) if stall.surroundings else None),
        )

    def packed(self, stall: Stall) -> Json:
        """The stall as a JSON-able dict: in `stacks`, frames are numbers of those in `frames`."""
        table = _Frames()
        packed = to_wire(replace(stall, stacks=()))
        packed["stacks"] = [
            {**to_wire(replace(stack, frames=())), "frames": table.numbers(stack.frames)}
            for stack in stall.stacks
        ]
        packed["frames"] = [to_wire(frame) for frame in table.frames]
        return packed

    def unpacked(self, packed: object) -> Stall:
        """The stall that was packed. Equal frames are one object. WireError."""
        if not isinstance(packed, dict):
            raise WireError("stall: must be an object")
        frames = [from_wire(StackFrame, frame, "stall.frames") for frame in _list(packed, "frames")]
        stacks = [_stack(stack, frames) for stack in _list(packed, "stacks")]
        return from_wire(Stall, {**packed, "stacks": stacks})


def _more_holders(stall: Stall) -> str:
    more = len(holders_of(stall)) - _HOLDERS_MAX
    return count_of(more, "more thread") if more > 0 else ""


def _call(stall: Stall) -> tuple[Piece, ...] | None:
    blocker = stall.blocker
    if blocker is None or not (blocker.call or blocker.function):
        return None
    call, reached = name(blocker.call), name(blocker.function)
    return said(call, ", which was in ", reached) if call.text and reached.text else said(call, reached)


def _portions(stall: Stall) -> Iterator[Block]:
    """Parts of a mixed stall."""
    rows = [
        TableRow(
            (
                said(strong(share_words(portion.share))),
                said(portion.cause.value),
                _spot(stall, portion),
                said(name(portion.blocker.call)) if portion.blocker is not None else (),
            )
        )
        for portion in stall.portions
    ]
    if rows:
        heads = Head("share", is_number=True), Head("cause"), Head("where"), Head("call")
        yield Table(heads, tuple(rows))


def _spot(stall: Stall, portion: Portion) -> Pieces:
    holder = held_in(stall, portion)
    return spot(portion.culprit, portion.cause) if holder is None else spot_held(holder, portion.cause)


def _contributors(stall: Stall) -> Iterator[Block]:
    """The callbacks of a turn, with what scheduled them where that is known."""
    found = stall.contributors
    if not found:
        return
    numbers = tuple(Head(words, is_number=True) for words in ("total", "count", "mean", "longest"))
    yield Table((*numbers, Head("callback")), tuple(map(_contributor, found[:_CONTRIBUTORS_MAX])))
    if len(found) > _CONTRIBUTORS_MAX:
        yield line(dim(f"and {count_of(len(found) - _CONTRIBUTORS_MAX, 'more callback')}"))


def _contributor(one: Contributor) -> TableRow:
    mean = format_duration(one.total_ns // one.count) if one.count else "-"
    total, longest = format_duration(one.total_ns), format_duration(one.longest_ns)
    cells = (said(total), said(f"{one.count:,}"), said(mean), said(longest), said(name(one.name)))
    return TableRow(cells, below=(line(*_scheduled(one)),) if one.scheduled else ())


def _scheduled(one: Contributor) -> Iterator[Said]:
    """`scheduled at app.py:12 (812), feed.py:7 (30) and 4 more places`."""
    known = one.scheduled
    is_alone = len(known) == 1 and known[0].count == one.count
    for position, site in enumerate(known[:_SITES_MAX]):
        yield dim(", " if position else "scheduled at ")
        yield place_of(site.file, site.line)
        yield dim("" if is_alone else f" ({site.count:,})")
    if len(known) > _SITES_MAX:
        yield dim(f" and {count_of(len(known) - _SITES_MAX, 'more place')}")


def _earlier(stall: Stall) -> Iterator[Block]:
    """What the loop ran in the seconds before, the last of it."""
    if stall.timeline is None or not stall.timeline.earlier:
        return
    rows = [
        TableRow(
            (
                said("" if row.ago_ns is None else format_duration(row.ago_ns)),
                said(format_duration(row.length_ns)),
                said("in it: " if row.is_inner else "", row.words),
            )
        )
        for row in earlier_rows(stall.timeline, _EARLIER_MAX, NAME_MAX)
    ]
    yield Table((Head("before", is_number=True), Head("for", is_number=True), Head("what")), tuple(rows))


def _how_ended(stall: Stall) -> tuple[str, str | None]:
    """By what, or which signal came in it."""
    by = stall.killed_by if stall.state is StallState.ENDED else None
    is_end = by is not None and (by.signal or str(by.reason).startswith(BY_EXIT))
    return "ended by" if is_end else "signal", killed_by_words(by) or None


def _loop(stall: Stall) -> str:
    thread = thread_by_name(stall.thread)
    scope = _SCOPE_WORDS.get(stall.scope)
    return f"none: {thread} was in no turn" if scope is None else f"{stall.loop} on {thread}, {scope}"


def _seen(stall: Stall) -> str:
    dropped = f", {stall.dropped_samples:,} dropped" if stall.dropped_samples else ""
    over = f" over {share_words(stall.coverage)} of it" if stall.coverage or stall.loop != LOOPER else ""
    samples = f"{count_of(stall.samples, 'sample')}{over}"
    engine = printable(stall.engine, NAME_MAX)
    source = f"by {engine}" if stall.loop == LOOPER else f"{engine} engine"
    return f"{samples}, {source}{dropped}; {_GRADE_WORDS[stall.grade]}"


def _thread(view: ThreadView) -> Iterator[Block]:
    """Another thread of the process, as it was when the stall became a hang."""
    notes = ["held the GIL"] if view.holds_gil else []
    notes += ["waited for the GIL"] if view.waits_for_gil else []
    notes += [state_words(view.state)] if view.state else []
    extra = f" ({', '.join(notes)})" if notes else ""
    title = said(number("thread "), printable(view.name or str(view.tid), NAME_MAX), dim(extra))
    yield from part(title, [Indented((frames_of(view.frames),))], is_aside=True)


def _what(stall: Stall) -> str:
    length = format_duration(stall.duration_ns)
    if stall.state is StallState.CRASHED:
        return "crash"
    if stall.state is StallState.KILLED:
        why = stall.killed_by.reason if stall.killed_by is not None else None
        return f"killed while stalled for {length}" + (f" ({printable(why, _REASON_MAX)})" if why else "")
    of = "for" if stall.severity is Severity.ANR else "of"
    more = " and still in progress" if stall.state is StallState.ONGOING else ""
    return f"{severity_words(stall.severity)} {of} {length}{more}"


class _Frames:
    """Numbers frames, each object once: stacks share theirs."""

    def __init__(self) -> None:
        self.frames: list[StackFrame] = []
        self._numbers: dict[int, int] = {}

    def numbers(self, frames: Sequence[StackFrame]) -> list[int]:
        """The numbers of the frames of a stack."""
        known = self._numbers
        try:
            return [known[id(frame)] for frame in frames]
        except KeyError:
            for frame in frames:
                if id(frame) not in known:
                    known[id(frame)] = len(self.frames)
                    self.frames.append(frame)
            return [known[id(frame)] for frame in frames]


def _list(packed: dict[Any, Any], field: str) -> list[Any]:
    value = packed.get(field)
    if not isinstance(value, list):
        raise WireError(f"stall.{field}: must be a list")
    return value


def _stack(packed: object, frames: list[StackFrame]) -> WeightedStack:
    if not isinstance(packed, dict):
        raise WireError("stall.stacks: must hold objects")
    numbers = _list(packed, "frames")
    for found in set(map(type, numbers)):
        if found is not int:
            raise WireError(f"stall.stacks.frames: must hold numbers, not {found.__name__}")
    if numbers and not 0 <= min(numbers) <= max(numbers) < len(frames):
        raise WireError("stall.stacks.frames: a number of no frame")
    named = [frames[number] for number in numbers]
    return from_wire(WeightedStack, {**packed, "frames": named}, "stall.stacks")
