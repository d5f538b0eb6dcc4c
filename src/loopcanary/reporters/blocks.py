"""Stalls as blocks of text for stderr. Pure: values in, text out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from loopcanary.document.layout import Sheet, lines, painted
from loopcanary.document.makers import dim, facts, line, name, said, sentences
from loopcanary.document.parts import (
    Block,
    Document,
    Head,
    Indented,
    Paragraph,
    Piece,
    Pieces,
    Table,
    TableRow,
    Tone,
)
from loopcanary.document.verdict import (
    SEVERITY_TONES,
    advice,
    holders_of,
    severity,
    spot,
    verdict,
    where_held,
)
from loopcanary.late_dataclass import dataclass
from loopcanary.model import Cause, Culprit, Issue, IssueKind, LoopHealth, Session, Stall, StallState
from loopcanary.model.units import format_duration
from loopcanary.protocols.kinds import kind_named, kind_of
from loopcanary.protocols.plugins import Look
from loopcanary.words.guards import unreported_words
from loopcanary.words.lives import life_words
from loopcanary.words.text import count_of, printable
from loopcanary.words.waiting import (
    contributor_words,
    holder_label,
    share_words,
    target_words,
    thread_by_name,
)

_TAG = dim("[loopcanary] ")
_TITLE_MAX = 60
_PROCESS_MAX = 100
_ADVICE_MAX = 300
_ROWS_MAX = 15
_LOOPS_MAX = 4
_CONTRIBUTORS_MAX = 2
_TARGET_MAX = 100
_WHOLE = 0.995
_NO_OTHERS: Mapping[IssueKind, int] = {}
_STATES = {
    StallState.ENDED: "",
    StallState.ONGOING: " and still in progress",
    StallState.KILLED: " until the process was killed",
    StallState.CRASHED: "",
}


@dataclass(slots=True, kw_only=True)
class _Named:
    """The name of the stalls of one cause."""

    cause: Cause
    culprit: Culprit | None
    title: str
    weight: float = 0.0
    """Their time, each weighed by the confidence in its cause."""


@dataclass(slots=True, kw_only=True)
class Tally:
    count: int = 0
    total_ns: int = 0
    max_ns: int = 0
    _names: dict[Cause, _Named] = field(default_factory=dict)

    def add(self, stall: Issue) -> None:
        self.count += 1
        self.total_ns += stall.duration_ns
        self.max_ns = max(self.max_ns, stall.duration_ns)
        empty = _Named(cause=stall.cause, culprit=stall.blamed, title=stall.title)
        named = self._names.setdefault(stall.cause, empty)
        named.weight += stall.duration_ns * stall.confidence
        if stall.cause is Cause.HOST and _place(stall.blamed) != _place(named.culprit):
            named.culprit = None  # it strikes any code: none of the places is the group's

    def take_back(self, stall: Issue) -> None:
        """Subtracts a stall of which more was seen since."""
        self.count -= 1
        self.total_ns -= stall.duration_ns
        named = self._names.get(stall.cause)
        if named is not None:
            named.weight -= stall.duration_ns * stall.confidence
            if named.weight <= 0:
                del self._names[stall.cause]

    @property
    def named(self) -> _Named:
        """The name by the cause with most time."""
        return max(self._names.values(), key=lambda named: named.weight)


def _place(culprit: Culprit | None) -> tuple[str, str] | None:
    return None if culprit is None else (culprit.file, culprit.qualname)


def stall_block(stall: Stall, look: Look, process: str = "") -> str:
    """The stall in full: what and why, where, the call, who was running, what would help, and the process if
    that is not plain."""
    who = ", ".join([*_who(stall), *_in(process)])
    below: list[Block] = [
        *where_held(stall.culprit, stall.cause, stall.holder),
        *_waited_for(stall),
        *([line(dim(who))] if who else []),
        facts(("try", advice(stall.advice, _ADVICE_MAX))),
    ]
    headline = line(_TAG, severity(stall), _STATES[stall.state], ", ", verdict(stall.cause, stall))
    return _shown(look, headline, Indented(tuple(below)))


IN_FULL: dict[str, Callable[[Any, Look, str], str]] = {"stall": stall_block}
"""By the name of a kind, what writes the first issue of a bug in full. The console counts and sums up
the bugs of these kinds; of others it writes a line."""


def repeat_line(stall: Issue, tally: Tally, look: Look, process: str = "") -> str:
    """One line for a bug that was shown before."""
    now = Piece(format_duration(stall.duration_ns), SEVERITY_TONES[stall.severity])
    sums = f" ({count_of(tally.count, 'stall')}, {format_duration(tally.total_ns)} in all)"
    place = _spot(stall.blamed, stall.title)
    state = _STATES[stall.state]
    return _shown(look, line(_TAG, "again: ", now, state, " at ", place, sums, *_ending(process)))


def issue_line(issue: Issue, repeated: int, look: Look, process: str = "") -> str:
    """An issue of another kind than stalls: one line."""
    times = f" (x{repeated + 1})" if repeated else ""
    what = Piece(f"{kind_of(issue).words}{times}", Tone.NUMBER)
    return _shown(look, line(_TAG, what, f": {printable(issue.title, _ADVICE_MAX)}", *_ending(process)))


def later_line(stall: Any, shown: Issue, look: Look, process: str = "") -> str:
    """A stall that was shown while it lasted goes on, or has ended; with its cause, if that is another "
    "one."""
    what = "still in progress after " if stall.state is StallState.ONGOING else "ended after "
    length = Piece(format_duration(stall.duration_ns), SEVERITY_TONES[stall.severity])
    cause = said("; ", verdict(stall.cause, stall)) if stall.cause is not shown.cause else ()
    place = _spot(stall.blamed, stall.title)
    return _shown(look, line(_TAG, what, length, ": ", place, cause, *_ending(process)))


def summary_block(
    tallies: Sequence[Tally],
    session: Session,
    details: str,
    look: Look,
    process: str = "",
    *,
    others: Mapping[IssueKind, int] = _NO_OTHERS,
) -> str:
    """The session's end: bugs by total time, numbers of other issues, the loops' figures, where to read
    more."""
    count, total_ns = sum(tally.count for tally in tallies), sum(tally.total_ns for tally in tallies)
    ranked = sorted(tallies, key=lambda tally: -tally.total_ns)
    length = "".join(f", {words}" for words in [*_in(process), *_run_length(session)])
    below: list[Block] = [line(dim(words)) for words in unreported_words(session.statistics)]
    if count:
        sums = f" in {count_of(len(ranked), 'bug')}, {format_duration(total_ns)} in all"
        headline = line(_TAG, f"{count_of(count, 'stall')}{sums}{length}")
        below = [*_table(ranked), *_other_lines(others), *below]
    elif others and not any(loop.turns for loop in session.loops):
        headline = line(_TAG, f"{_others_words(others)}{length}")
    else:
        none = "no reported stall" if below else "no stall"
        threshold = format_duration(session.threshold_ns)
        headline = line(_TAG, f"{none} over {threshold} in this process{length}")
        below = [*_other_lines(others), *below]
    below += [_loop_line(loop, session) for loop in session.loops[:_LOOPS_MAX] if loop.turns]
    if count or others:
        below.append(_where_to_read(count, session, details))
    return _shown(look, headline, Indented(tuple(below)))


def _others_words(others: Mapping[IssueKind, int]) -> str:
    return ", ".join(kind_named(kind).counted(number) for kind, number in others.items())


def _other_lines(others: Mapping[IssueKind, int]) -> list[Block]:
    return [line(f"and {_others_words(others)}")] if others else []


def _shown(look: Look, *blocks: Block) -> str:
    sheet = Sheet(width=look.width, folder=look.folder, indent=2, labels=0)
    return painted(lines(Document(blocks), sheet), colour=look.colour, links=look.links)


def _waited_for(stall: Stall) -> Iterator[Paragraph]:
    """One line at most: what the stall waited on, who held that, or the callbacks of its turn."""
    parts: list[Pieces] = []
    if stall.waited_on is not None:
        parts.append(said(f"waited on {target_words(stall.waited_on, _TARGET_MAX)}"))
    if stall.holder is not None:
        holder, more = stall.holder, len(holders_of(stall)) - 1
        share = "" if holder.share >= _WHOLE else f" for {share_words(holder.share)}"
        others = f" and {more} more" if more else ""
        parts.append(said(f"{holder_label(holder)} {thread_by_name(holder.thread)}{share}{others}"))
    if stall.contributors and not parts:
        found = stall.contributors[:_CONTRIBUTORS_MAX]
        parts.append(said(f"mostly {', '.join(map(contributor_words, found))}"))
    if parts:
        yield line(parts[0], *(piece for part in parts[1:] for piece in said("; ", part)))


def _who(stall: Stall) -> Iterator[str]:
    for label, found in (("task", stall.task), ("callback", stall.callback), ("scene", stall.scene)):
        if found:
            yield f"{label} {name(found).text}"
    if stall.thread != "MainThread":
        yield thread_by_name(stall.thread)


def _in(process: str) -> list[str]:
    return [f"in {printable(process, _PROCESS_MAX)}"] if process else []


def _ending(process: str) -> list[str]:
    return [f", {words}" for words in _in(process)]


def _table(ranked: Sequence[Tally]) -> Iterator[Block]:
    numbers = [Head(words, is_number=True) for words in ("total", "count", "max")]
    rows = [
        TableRow(
            (
                said(format_duration(tally.total_ns)),
                said(f"{tally.count:,}"),
                said(format_duration(tally.max_ns)),
                said(tally.named.cause.value),
                _spot(tally.named.culprit, tally.named.title),
            )
        )
        for tally in ranked[:_ROWS_MAX]
    ]
    yield Table((*numbers, Head("cause"), Head("where")), tuple(rows))
    left_out = len(ranked) - _ROWS_MAX
    if left_out > 0:
        total_ns = sum(tally.total_ns for tally in ranked[_ROWS_MAX:])
        yield line(f"and {count_of(left_out, 'more bug')}, {format_duration(total_ns)} in all")


def _where_to_read(count: int, session: Session, details: str) -> Paragraph:
    if session.statistics.get("failures_store", 0) < max(count, 1):
        return line(dim("more: "), details)
    later = f"`{details}` shows the first stalls if the store works again"
    return sentences(dim("not stored: "), f"the store failed; {later}")


def _loop_line(loop: LoopHealth, session: Session) -> Paragraph:
    who = dim(f"{name(loop.thread).text} ({name(loop.kind).text})")
    delay = f"mean {format_duration(loop.delay_mean_ns)}, p99 {format_duration(loop.delay_p99_ns)}"
    life = "".join(f", {words}" for words in [life_words(loop, session)] if words)
    return sentences(who, f" busy {share_words(loop.utilization)}{life}; loop delay: {delay}")


def _run_length(session: Session) -> list[str]:
    if session.ended_wall_ns is None:
        return []
    return [f"in a run of {format_duration(max(session.ended_wall_ns - session.started_wall_ns, 0))}"]


def _spot(culprit: Culprit | None, title: str) -> Pieces:
    if culprit is None and title:
        return said(name(title, _TITLE_MAX))
    return spot(culprit, Cause.UNKNOWN)
