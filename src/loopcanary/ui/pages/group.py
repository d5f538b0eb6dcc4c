"""One bug: where, why, what to do, what that buys, and how its stalls spread."""

from __future__ import annotations

from dataclasses import dataclass

from loopcanary.model import Session, Stall
from loopcanary.model.search import STALLS, IssueGroup, IssueQuery, Remark, of_type
from loopcanary.protocols.stores import IssueStore
from loopcanary.report.figures.affected import Affected
from loopcanary.report.figures.gain_words import gain_words
from loopcanary.report.figures.trend import trend_words
from loopcanary.report.model import of_bug
from loopcanary.ui.drawing import HeatMap, heat_map
from loopcanary.ui.pages.code import AROUND, CodeView, code_view
from loopcanary.ui.pages.flame import Flame, flame
from loopcanary.ui.tools import Tools

LATEST = 20
_FLAME_STALLS = 200
_HEAT_COLUMNS = 48
_RANKS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPage:
    """What the template shows."""

    group: IssueGroup
    share: float
    """Of all stalled time in the stores."""
    rank: int | None
    """None: it is not among the first _RANKS."""
    worst: Stall | None
    code: CodeView | None
    holder: CodeView | None
    """The line of the thread that held what this one waited for."""
    trend: str
    gains: tuple[str, ...]
    grouped_by: tuple[tuple[str, str], ...]
    affected: Affected
    heat: HeatMap | None
    flame: Flame
    latest: tuple[Stall, ...]
    sessions: tuple[Session, ...]
    remark: Remark


def group_page(source: IssueStore, fingerprint: str, tools: Tools, now_wall_ns: int) -> GroupPage | None:
    """None where there is no such bug."""
    report = of_bug(
        source,
        fingerprint,
        limit=_FLAME_STALLS,
        now_wall_ns=now_wall_ns,
        explain=tools.why_grouped,
        delays=tools.delays,
    )
    if report is None or not report.groups or report.details is None or report.details.affected is None:
        return None
    group = report.groups[0]
    worst = next(iter(of_type(Stall, [report.worst.get(fingerprint)])), None)
    sums = source.totals(STALLS)
    figures = report.figures.get(fingerprint)
    with_worst = {stall.id: stall for stall in [*report.stalls, *([worst] if worst is not None else [])]}
    return GroupPage(
        group=group,
        share=group.total_ns / sums.total_ns if sums.total_ns else 0.0,
        rank=_rank_of(fingerprint, source),
        worst=worst,
        code=code_of(group, worst, source, tools),
        holder=holder_code(worst, source, tools),
        trend=trend_words(figures.trend) if figures is not None else "",
        gains=tuple(gain_words(figures.gains)) if figures is not None else (),
        grouped_by=tuple(_pair(part) for part in report.details.parts),
        affected=report.details.affected,
        heat=heat_map(
            [(mark.began_wall_ns, mark.duration_ns) for mark in report.details.history], _HEAT_COLUMNS
        ),
        flame=flame(with_worst.values()),
        latest=tuple(report.stalls[:LATEST]),
        sessions=tuple(report.sessions),
        remark=source.remarks().get(fingerprint, Remark()),
    )


def _rank_of(fingerprint: str, source: IssueStore) -> int | None:
    """As the list of bugs has it."""
    first = enumerate(source.groups(STALLS, _RANKS), start=1)
    return next((rank for rank, other in first if other.fingerprint == fingerprint), None)


def code_of(
    group: IssueGroup, worst: Stall | None, source: IssueStore, tools: Tools, around: int = AROUND
) -> CodeView | None:
    """The group's line with its neighbours, as its latest stall has it."""
    if group.culprit is None:
        return None
    latest = next(
        iter(of_type(Stall, source.issues(IssueQuery(fingerprint=group.fingerprint).stalls, 1))), worst
    )
    return code_view(group.culprit, started_of(source, latest), tools.read_source, around)


def holder_code(
    stall: Stall | None, source: IssueStore, tools: Tools, around: int = AROUND
) -> CodeView | None:
    """The line of the thread that held the GIL or lock; None where nobody did, or it is not known."""
    if stall is None or stall.holder is None or stall.holder.culprit is None:
        return None
    return code_view(stall.holder.culprit, started_of(source, stall), tools.read_source, around)


def started_of(source: IssueStore, stall: Stall | None) -> int | None:
    """When the process of a stall started here; None where that is not known.

    What was imported ran elsewhere, and the bundle's maker can name any file and guess a line: a page that is
    passed on does not show the lines around it.
    """
    session = session_of(source, stall)
    return None if session is None or session.imported_wall_ns is not None else session.started_wall_ns


def session_of(source: IssueStore, stall: Stall | None) -> Session | None:
    if stall is None:
        return None
    found = source.sessions(IssueQuery(session=stall.session), 2)
    return next((session for session in found if session.id == stall.session), None)


def _pair(part: str) -> tuple[str, str]:
    name, _, value = part.partition("=")
    return name, value
