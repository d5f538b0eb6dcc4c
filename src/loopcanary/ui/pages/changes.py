"""What changed: the latest version against the one before, or the latest run against those before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loopcanary.model.search import SessionMark, StallQuery
from loopcanary.report.comparison import Change, Compared, Comparison, Side, compare
from loopcanary.report.times import moment
from loopcanary.ui.sources import Source

_ROWS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesPage:
    """What the template shows."""

    program: str
    comparison: Comparison | None
    """None: there is nothing before to compare with."""
    rows: tuple[Compared, ...]
    counts: tuple[tuple[Change, int], ...]


def changes_page(source: Source, now_wall_ns: int) -> ChangesPage:
    """Of the program that ran last."""
    marks = source.session_marks(StallQuery())
    latest = marks[0] if marks else None
    sides = _sides(source, marks, latest) if latest is not None else None
    comparison = compare(*sides, now_wall_ns=now_wall_ns) if sides is not None else None
    return ChangesPage(
        program=latest.name if latest is not None else "",
        comparison=comparison,
        rows=comparison.groups[:_ROWS] if comparison is not None else (),
        counts=tuple((one, comparison.counts[one]) for one in Change) if comparison is not None else (),
    )


def _sides(source: Source, marks: Sequence[SessionMark], latest: SessionMark) -> tuple[Side, Side] | None:
    earlier = [mark for mark in marks if mark.name == latest.name and mark.id != latest.id]
    before = next((one.version for one in earlier if one.version and one.version != latest.version), None)
    if before is not None and latest.version:
        return (
            Side(source=source, query=StallQuery(), label=f"version {before}", version=before),
            Side(
                source=source, query=StallQuery(), label=f"version {latest.version}", version=latest.version
            ),
        )
    begin = latest.started_wall_ns
    if not any(mark.started_wall_ns < begin for mark in earlier):
        return None
    return (
        Side(source=source, query=StallQuery(until_wall_ns=begin), label=f"before {moment(begin)}"),
        Side(source=source, query=StallQuery(since_wall_ns=begin), label=f"since {moment(begin)}"),
    )
