"""Starts of programs: how long each took, and what it did meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from loopcanary.late_dataclass import dataclass
from loopcanary.model import IssueKind, Startup
from loopcanary.model.search import IssueQuery, of_type
from loopcanary.protocols.stores import IssueStore
from loopcanary.ui.pages.timeline import ticks

ROWS = 50
_PROGRAMS = 8
_BARS = 40
_WIDTH, _HEIGHT = 400.0, 60.0
_TICKS = 2
"""A timeline has so many times the ticks of an axis that is 90 px high."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartBar:
    start: Startup
    x: float
    width: float
    y: float
    height: float
    limit_y: float | None
    """The place of its limit; None: above the chart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """The starts of one program, oldest first."""

    program: str
    bars: tuple[StartBar, ...]
    ticks: tuple[tuple[float, int], ...]
    """Heights, and round lengths in ns."""
    most_ns: int
    slow: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StartupPage:
    total: int
    """The number of stored starts."""
    rows: tuple[Startup, ...]
    courses: tuple[Course, ...]
    is_first: bool
    earlier: int | None
    """The begin of the next page, if there is one."""


def startup_page(source: IssueStore, until_wall_ns: int | None = None) -> StartupPage:
    """Starts, latest first; those before `until_wall_ns`, if it is given."""
    query = IssueQuery(kind=IssueKind.STARTUP, until_wall_ns=until_wall_ns)
    found = of_type(Startup, source.issues(query, ROWS + 1))
    rows = tuple(found[:ROWS])
    return StartupPage(
        total=source.totals(IssueQuery(kind=IssueKind.STARTUP)).issues,
        rows=rows,
        courses=courses(rows),
        is_first=until_wall_ns is None,
        earlier=rows[-1].began_wall_ns if len(found) > ROWS else None,
    )


def courses(starts: Sequence[Startup]) -> tuple[Course, ...]:
    """The courses of starts, which come latest first; the program that started last is the first."""
    by_program: dict[str, list[Startup]] = {}
    for start in starts:
        by_program.setdefault(start.program, []).append(start)
    first = list(by_program.items())[:_PROGRAMS]
    return tuple(_course(program, list(reversed(some[:_BARS]))) for program, some in first)


def _course(program: str, starts: Sequence[Startup]) -> Course:
    longest_ns = max(start.duration_ns for start in starts)
    # A limit far above all starts would leave them no height.
    limits = {start.threshold_ns for start in starts if 0 < start.threshold_ns <= 4 * longest_ns}
    most = max(longest_ns, 1, *limits)
    step = _WIDTH / _BARS

    def y(length_ns: int) -> float:
        return round(_HEIGHT - _HEIGHT * length_ns / most, 2)

    return Course(
        program=program,
        bars=tuple(
            StartBar(
                start=start,
                x=round(number * step, 2),
                width=round(step * 0.8, 2),
                y=(top := min(y(start.duration_ns), _HEIGHT - 1.5)),
                height=round(_HEIGHT - top, 2),
                limit_y=y(start.threshold_ns) if start.threshold_ns in limits else None,
            )
            for number, start in enumerate(starts)
        ),
        ticks=tuple((y(length), length) for length in tuple(ticks(most))[::_TICKS]),
        most_ns=longest_ns,
        slow=sum(start.is_slow for start in starts),
    )
