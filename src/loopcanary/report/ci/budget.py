"""What a run may cost its loops, and what it did cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from loopcanary.document.makers import said, strong
from loopcanary.document.parts import Document, Head, Heading, Piece, Table, TableRow, Tone
from loopcanary.late_dataclass import dataclass
from loopcanary.model import LoopHealth, Session, Startup
from loopcanary.model.search import IssueGroup
from loopcanary.model.units import format_duration
from loopcanary.words.text import count_of, printable
from loopcanary.words.traced import run_words


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits; None: there is none."""

    p99_delay_ns: int | None = None
    """Of the loop delay of every loop."""
    longest_stall_ns: int | None = None
    stalled_share: float | None = None
    """Of the time that a loop was watched, 0 to 1."""
    startup_ns: int | None = None
    """Of every program that was started, without the time that loopcanary took."""
    new_bugs: int | None = None
    """Bugs that are not in the baseline; without one, all."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is limited."""
        return self == Budget()


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One limit."""

    name: str
    found: str
    limit: str
    is_broken: bool
    where: str
    """The loop or bug that has most of it; empty: there is none."""


def judged(
    budget: Budget,
    sessions: Sequence[Session],
    bugs: Sequence[IssueGroup],
    start: Startup | None,
    new: int,
) -> list[Judged]:
    """Each limit of the budget against the runs. `bugs`: of stalls; `start`: the longest; `new`: how many
    bugs are not known."""
    return [
        *_by_loop(budget, [loop for session in sessions for loop in session.loops if loop.window_ns]),
        *_longest(budget, bugs),
        *_start(budget, start),
        *_new(budget, new),
    ]


def _by_loop(budget: Budget, loops: Sequence[LoopHealth]) -> Iterator[Judged]:
    if budget.p99_delay_ns is not None:
        worst = max(loops, key=lambda loop: loop.delay_p99_ns, default=None)
        found_ns = 0 if worst is None else worst.delay_p99_ns
        yield Judged(
            name="loop delay p99",
            found=format_duration(found_ns),
            limit=format_duration(budget.p99_delay_ns),
            is_broken=found_ns > budget.p99_delay_ns,
            where=_loop(worst),
        )
    if budget.stalled_share is not None:
        worst = max(loops, key=_stalled, default=None)
        share = 0.0 if worst is None else _stalled(worst)
        yield Judged(
            name="stalled share",
            found=f"{share:.2%}",
            limit=f"{budget.stalled_share:.2%}",
            is_broken=share > budget.stalled_share,
            where=_loop(worst),
        )


def _stalled(loop: LoopHealth) -> float:
    return loop.stalled_ns / loop.window_ns


def _loop(loop: LoopHealth | None) -> str:
    return "" if loop is None else f"{printable(loop.thread, 50)} ({printable(loop.kind, 50)})"


def _longest(budget: Budget, bugs: Sequence[IssueGroup]) -> Iterator[Judged]:
    if budget.longest_stall_ns is None:
        return
    worst = max(bugs, key=lambda bug: bug.max_ns, default=None)
    found_ns = 0 if worst is None else worst.max_ns
    yield Judged(
        name="longest stall",
        found=format_duration(found_ns),
        limit=format_duration(budget.longest_stall_ns),
        is_broken=found_ns > budget.longest_stall_ns,
        where="" if worst is None else printable(worst.title, 200),
    )


def _start(budget: Budget, start: Startup | None) -> Iterator[Judged]:
    if budget.startup_ns is None:
        return
    found_ns = 0 if start is None else start.duration_ns - start.own_ns
    yield Judged(
        name="start",
        found=format_duration(found_ns),
        limit=format_duration(budget.startup_ns),
        is_broken=found_ns > budget.startup_ns,
        where="" if start is None else printable(f"{start.program}: {run_words(start)}", 200),
    )


def _new(budget: Budget, new: int) -> Iterator[Judged]:
    if budget.new_bugs is not None:
        yield Judged(
            name="new bugs",
            found=str(new),
            limit=str(budget.new_bugs),
            is_broken=new > budget.new_bugs,
            where="",
        )


def budget_document(limits: Sequence[Judged]) -> Document:
    """The limits as a table, broken ones marked."""
    broken = sum(limit.is_broken for limit in limits)
    heading = f"{count_of(broken, 'limit')} of the budget broken" if broken else "Within the budget"
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
