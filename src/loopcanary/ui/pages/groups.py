"""The list of bugs: ranked by stalled time, filtered, each with its course over time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from loopcanary.late_dataclass import dataclass
from loopcanary.model import Cause
from loopcanary.model.search import STALLS, IssueGroup, IssueQuery, Remark, SessionMark, Totals
from loopcanary.protocols.kinds import named_kinds
from loopcanary.protocols.stores import IssueStore
from loopcanary.ui.drawing import exact_scale

ROWS = 50
SPARK_CELLS = 24
OTHER = "other"
"""Stands for every kind but stalls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """The parameters as they were given, since the page shows them again."""

    query: IssueQuery = STALLS
    kind: str = ""
    """Empty: stalls; `other`: all other kinds."""
    since: str = ""
    text: str = ""
    with_ignored: bool = False
    page: int = 1
    wrong: tuple[str, ...] = ()
    """Lines about parameters that could not be read."""

    @property
    def is_any(self) -> bool:
        """Something is left out."""
        return self.query != STALLS or self.with_ignored


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    rank: int
    group: IssueGroup
    share: float
    """Its share of all stalled time of the list."""
    spark: tuple[int, ...]
    """Its stalled time in equal spans of the list's time."""
    remark: Remark


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsPage:
    filters: Filters
    issues: int
    groups: int
    total_ns: int
    rows: tuple[GroupRow, ...]
    ignored: int
    """The number of ignored bugs, which are left out."""
    pages: int
    kinds: tuple[tuple[str, str], ...]
    """The names and words of the kinds to choose from."""
    causes: tuple[Cause, ...]
    scenes: tuple[str, ...]
    programs: tuple[str, ...]
    sessions: tuple[SessionMark, ...]


def groups_page(source: IssueStore, filters: Filters) -> GroupsPage:
    query = filters.query
    remarks = source.remarks()
    ignored = set() if filters.with_ignored else ignored_in(source, query, remarks)
    sums = source.totals(query)
    end = filters.page * ROWS
    # Ignored ones among the first are made up for by as many more.
    found = source.groups(query, end + len(ignored))
    shown = [one for one in found if one.fingerprint not in ignored]
    first = end - ROWS
    runs = source.session_marks(IssueQuery())
    rows = group_rows(source, query, shown[first:end], sums, remarks, first_rank=first + 1)
    return GroupsPage(
        filters=filters,
        issues=sums.issues,
        groups=sums.groups,
        total_ns=sums.total_ns,
        rows=rows,
        ignored=len(ignored),
        pages=max(-(-(sums.groups - len(ignored)) // ROWS), 1),
        kinds=_kinds(),
        causes=tuple(Cause),
        scenes=tuple(source.scenes()),
        programs=programs_of(runs),
        sessions=tuple(runs[:100]),
    )


def programs_of(runs: Iterable[SessionMark]) -> tuple[str, ...]:
    return tuple(sorted({run.name for run in runs if run.name}))


def _kinds() -> tuple[tuple[str, str], ...]:
    registered = [(name, kind.words) for name, kind in named_kinds() if name != "stall"]
    return ("", "stall"), (OTHER, "any but stalls"), *registered


def ignored_in(source: IssueStore, query: IssueQuery, remarks: dict[str, Remark]) -> set[str]:
    """The ignored bugs among those that the query finds. A remark outlives the stalls of its bug."""
    return {
        name
        for name, remark in remarks.items()
        if remark.ignored and source.totals(replace(query, fingerprint=name)).issues
    }


def group_rows(
    source: IssueStore,
    query: IssueQuery,
    groups: Sequence[IssueGroup],
    sums: Totals,
    remarks: dict[str, Remark],
    *,
    first_rank: int = 1,
) -> tuple[GroupRow, ...]:
    """These groups with their course, from the first of them to the end of what the query finds, whose sums
    these are."""
    if not groups or sums.end_wall_ns is None:
        return ()
    scale = exact_scale(min(group.first_wall_ns for group in groups), sums.end_wall_ns, SPARK_CELLS)
    sparks = {group.fingerprint: [0] * scale.cells for group in groups}
    for cell in source.time_cells(
        query,
        "fingerprint",
        begin_wall_ns=scale.begin_wall_ns,
        step_ns=scale.step_ns,
        cells=scale.cells,
        keys=list(sparks),
    ):
        if cell.key in sparks and 0 <= cell.cell < scale.cells:
            sparks[cell.key][cell.cell] += cell.total_ns
    return tuple(
        GroupRow(
            rank=rank,
            group=group,
            share=group.total_ns / sums.total_ns if sums.total_ns else 0.0,
            spark=tuple(sparks[group.fingerprint]),
            remark=remarks.get(group.fingerprint, Remark()),
        )
        for rank, group in enumerate(groups, start=first_rank)
    )
