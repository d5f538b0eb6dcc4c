"""The stalls behind a part of a chart: those of a time, a length, a bug or a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from loopcanary.late_dataclass import dataclass
from loopcanary.model import Issue
from loopcanary.model.search import IssueQuery
from loopcanary.protocols.stores import IssueStore

ROWS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartPart:
    """A part of a chart; times are ns since 1970, None is no bound."""

    query: IssueQuery
    """The query for bug, run and kind."""
    from_ns: int | None = None
    to_ns: int | None = None
    """The end, which is not in the part."""
    reaching: bool = False
    """Whether issues count that began before and were going on."""
    least_ns: int = 0
    below_ns: int | None = None

    def has(self, began_wall_ns: int, duration_ns: int) -> bool:
        last = began_wall_ns + duration_ns if self.reaching else began_wall_ns
        return (
            (self.to_ns is None or began_wall_ns < self.to_ns)
            and (self.from_ns is None or last >= self.from_ns + self.reaching)
            and self.least_ns <= duration_ns
            and (self.below_ns is None or duration_ns < self.below_ns)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StallsPage:
    part: ChartPart
    issues: int
    total_ns: int
    """The sum of their lengths, including time outside of the part."""
    rows: tuple[Issue, ...]


def stalls_page(source: IssueStore, part: ChartPart) -> StallsPage:
    """Counts all issues of the part, and shows at most ROWS."""
    query = replace(part.query, until_wall_ns=part.to_ns)
    times = [(began, length) for _, _, began, length in source.times(query) if part.has(began, length)]
    return StallsPage(
        part=part,
        issues=len(times),
        total_ns=sum(length for _, length in times),
        rows=tuple(_shown(source, query, part, min((began for began, _ in times), default=None))),
    )


def _shown(
    source: IssueStore, query: IssueQuery, part: ChartPart, first_wall_ns: int | None
) -> Iterator[Issue]:
    if first_wall_ns is None:
        return
    found = source.issues(replace(query, since_wall_ns=first_wall_ns), ROWS)
    yield from (one for one in found if part.has(one.began_wall_ns, one.duration_ns))
