"""The page of changes: the latest version against the one before, or the latest run against earlier ones."""

from __future__ import annotations

from collections.abc import Sequence

from loopcanary.document.times import moment
from loopcanary.late_dataclass import dataclass
from loopcanary.model.search import IssueQuery, SessionMark
from loopcanary.protocols.stores import IssueStore
from loopcanary.report.diff.comparison import Change, Compared, Comparison, Side, compare
from loopcanary.report.figures.watched import HOUR_NS

_ROWS = 100
_PROGRAMS = 200
_EVER = IssueQuery()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesPage:
    program: str
    programs: tuple[str, ...]
    """The watched programs, the one that ran last first."""
    comparison: Comparison | None
    """None: there is nothing earlier."""
    certain: tuple[Compared, ...]
    """Changes that are not chance."""
    rows: tuple[Compared, ...]
    watched_ns: tuple[int, int]
    """The watched time of each side."""


def changes_page(source: IssueStore, program: str | None, now_wall_ns: int) -> ChangesPage:
    """The changes of one program; None, or an unknown one: of the program that ran last."""
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
    """Both sides of a program whose marks these are, newest first; None: it ran once."""
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
