"""The limits of a run's budget, and the verdicts on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from loopcanary.document.makers import said, strong
from loopcanary.document.parts import Document, Head, Heading, Piece, Table, TableRow, Tone
from loopcanary.late_dataclass import dataclass
from loopcanary.model import LoopHealth, Session, Startup
from loopcanary.model.search import IssueGroup
from loopcanary.model.units import format_duration
from loopcanary.protocols.kinds import kind_of
from loopcanary.words.text import count_of, printable

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits; None: there is none."""

    p99_delay_ns: int | None = None
    """The limit of every loop's delay."""
    longest_stall_ns: int | None = None
    stalled_share: float | None = None
    """The share of a loop's watched time, 0 to 1."""
    startup_ns: int | None = None
    """The limit of every start, without the time that loopcanary took."""
    new_bugs: int | None = None
    """The limit of bugs that are not in the baseline, if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    name: str
    found: str
    limit: str
    is_broken: bool
    where: str
    """The loop or bug with most of it; empty: there is none."""


def judged(
    budget: Budget,
    sessions: Sequence[Session],
    bugs: Sequence[IssueGroup],
    start: Startup | None,
    new: int,
) -> list[Judged]:
    """Holds the runs against each limit. `bugs` are those of stalls, `start` is the longest one, `new` the
    number of bugs that are not known."""
    return [
        *_by_loop(budget, [loop for session in sessions for loop in session.loops if loop.window_ns]),
        *_longest(budget, bugs),
        *_start(budget, start),
        *([] if budget.new_bugs is None else [_judged("new bugs", new, budget.new_bugs, str)]),
    ]


def _by_loop(budget: Budget, loops: Sequence[LoopHealth]) -> Iterator[Judged]:
    if budget.p99_delay_ns is not None:
        worst = max(loops, key=lambda loop: loop.delay_p99_ns, default=None)
        found_ns = 0 if worst is None else worst.delay_p99_ns
        yield _judged("loop delay p99", found_ns, budget.p99_delay_ns, format_duration, _loop(worst))
    if budget.stalled_share is not None:
        worst = max(loops, key=_stalled, default=None)
        share = 0.0 if worst is None else _stalled(worst)
        yield _judged("stalled share", share, budget.stalled_share, "{:.2%}".format, _loop(worst))


def _stalled(loop: LoopHealth) -> float:
    return loop.stalled_ns / loop.window_ns


def _loop(loop: LoopHealth | None) -> str:
    return "" if loop is None else f"{printable(loop.thread, 50)} ({printable(loop.kind, 50)})"


def _longest(budget: Budget, bugs: Sequence[IssueGroup]) -> Iterator[Judged]:
    if budget.longest_stall_ns is not None:
        worst = max(bugs, key=lambda bug: bug.max_ns, default=None)
        found_ns, where = (0, "") if worst is None else (worst.max_ns, printable(worst.title, 200))
        yield _judged("longest stall", found_ns, budget.longest_stall_ns, format_duration, where)


def _start(budget: Budget, start: Startup | None) -> Iterator[Judged]:
    if budget.startup_ns is not None:
        found_ns = 0 if start is None else start.duration_ns - start.own_ns
        where = "" if start is None else printable(f"{start.program}: {kind_of(start).run(start)}", 200)
        yield _judged("start", found_ns, budget.startup_ns, format_duration, where)


def _judged(
    name: str, found: Number, limit: Number, words: Callable[[Number], str], where: str = ""
) -> Judged:
    return Judged(name=name, found=words(found), limit=words(limit), is_broken=found > limit, where=where)


def budget_document(limits: Sequence[Judged]) -> Document:
    """The limits as a table, broken ones marked."""
    broken = sum(limit.is_broken for limit in limits)
    heading = f"{count_of(broken, 'limit')} of the budget exceeded" if broken else "Within the budget"
    columns = (
        Head("limit"),
        Head("found", is_number=True),
        Head("allowed", is_number=True),
        Head(""),
        Head("worst"),
    )
    return Document((Heading(said(strong(heading))), Table(columns, tuple(map(_row, limits)))))


def _row(limit: Judged) -> TableRow:
    word = Piece("broken", Tone.ALARM) if limit.is_broken else Piece("kept")
    return TableRow((said(limit.name), said(limit.found), said(limit.limit), said(word), said(limit.where)))
