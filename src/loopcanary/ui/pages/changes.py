"""What changed: the latest version against the one before, or the latest run against those before it."""

from __future__ import annotations

from collections.abc import Sequence

from loopcanary.late_dataclass import dataclass
from loopcanary.model.search import IssueQuery, SessionMark
from loopcanary.protocols.stores import IssueStore
from loopcanary.report.diff.comparison import Change, Compared, Comparison, Side, compare
from loopcanary.report.figures.watched import HOUR_NS
from loopcanary.report.times import moment

_ROWS = 100
_PROGRAMS = 200
_EVER = IssueQuery()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesPage:
    """What the template shows."""

    program: str
    programs: tuple[str, ...]
    """All that were watched, the one that ran last first."""
    comparison: Comparison | None
    """None: there is nothing before to compare with."""
    certain: tuple[Compared, ...]
    """What chance alone would not have done."""
    rows: tuple[Compared, ...]
    """The rest."""
    watched_ns: tuple[int, int]
    """How long each side was watched."""


def changes_page(source: IssueStore, program: str | None, now_wall_ns: int) -> ChangesPage:
    """Of one program; None, and one that was never watched: of the one that ran last."""
    marks = source.session_marks(IssueQuery())
    programs = tuple(dict.fromkeys(mark.name for mark in marks))
    chosen = program if program in programs else programs[0] if programs else ""
    sides = _sides(source, [mark for mark in marks if mark.name == chosen])
    comparison = compare(*sides, now_wall_ns=now_wall_ns, limit=_ROWS) if sides is not None else None
    groups = comparison.groups if comparison is not None else ()
    hours = (comparison.before.hours, comparison.after.hours) if comparison is not None else (0.0, 0.0)
    return ChangesPage(
        program=chosen,
        programs=programs[:_PROGRAMS],
        comparison=comparison,
        certain=tuple(filter(_is_certain, groups)),
        rows=tuple(one for one in groups if not _is_certain(one)),
        watched_ns=(round(hours[0] * HOUR_NS), round(hours[1] * HOUR_NS)),
    )


def _is_certain(one: Compared) -> bool:
    return one.is_sure or one.change in (Change.WORSE, Change.BETTER)


def _sides(source: IssueStore, marks: Sequence[SessionMark]) -> tuple[Side, Side] | None:
    """`marks`: of one program, newest first."""
    if not marks:
        return None
    latest, earlier = marks[0], marks[1:]

    def side(label: str, query: IssueQuery = _EVER, version: str | None = None) -> Side:
        return Side(source=source, query=query, label=label, version=version, program=latest.name)

    before = next((one.version for one in earlier if one.version and one.version != latest.version), None)
    if before is not None and latest.version:
        return (
            side(f"version {before}", version=before),
            side(f"version {latest.version}", version=latest.version),
        )
    begin = latest.started_wall_ns
    if not any(mark.started_wall_ns < begin for mark in earlier):
        return None
    return (
        side(f"before {moment(begin)}", IssueQuery(until_wall_ns=begin)),
        side(f"since {moment(begin)}", IssueQuery(since_wall_ns=begin)),
    )
