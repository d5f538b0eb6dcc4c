"""One bug of any kind: where, why, what to do, what that buys, and how its issues spread."""

from __future__ import annotations

from loopcanary.document.parts import Block, Document
from loopcanary.late_dataclass import dataclass
from loopcanary.model import Issue, Session, Stall
from loopcanary.model.search import IssueGroup, IssueQuery, Remark, of_type
from loopcanary.protocols.kinds import kind_of
from loopcanary.protocols.stores import IssueStore
from loopcanary.report.figures.affected import Affected
from loopcanary.report.figures.gains import gain_words
from loopcanary.report.figures.trend import trend_words
from loopcanary.report.issue import circumstances, session_of
from loopcanary.report.model import Report, of_bug
from loopcanary.ui.drawing import POINTS_MAX, Spread, spread
from loopcanary.ui.pages.code import CodeView, code_of, holder_code
from loopcanary.ui.pages.flame import Flame, flame, holding_flame
from loopcanary.ui.pages.stall import DRAWN
from loopcanary.ui.tools import Tools

LATEST = 20
_RANKS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class BugPage:
    group: IssueGroup
    share: float
    """Its share of the time of all issues of its kind."""
    rank: int | None
    """The rank in its kind; None: it is not among the first _RANKS."""
    worst: Issue | None
    stall: Stall | None
    """The worst issue, if it is a stall."""
    code: CodeView | None
    holder: CodeView | None
    """The line of the thread that held the GIL or lock."""
    trend: str
    gains: tuple[str, ...]
    grouped_by: tuple[tuple[str, str], ...]
    affected: Affected | None
    spread: Spread | None
    flame: Flame
    holding: Flame | None
    """The flame of the threads that held the GIL or lock."""
    own: Document
    """The part of its kind about the longest issue."""
    latest: tuple[Issue, ...]
    sessions: tuple[Session, ...]
    remark: Remark


def bug_page(source: IssueStore, fingerprint: str, tools: Tools, now_wall_ns: int) -> BugPage | None:
    """None: there is no such bug."""
    limits = {"limit": POINTS_MAX, "now_wall_ns": now_wall_ns}
    report = of_bug(source, fingerprint, explain=tools.why_grouped, delays=tools.delays, **limits)
    if report is None or report.details is None:
        return None
    group = next(iter((*report.groups, *report.issue_groups)))
    worst, details = report.worst.get(fingerprint), report.details
    figures = report.figures.get(fingerprint)
    latest: list[Issue] = [*(report.stalls if report.groups else report.issues)]
    with_worst = {stall.id: stall for stall in of_type(Stall, [*latest, worst])}
    rank, share = _rank_of(group, source)
    return BugPage(
        group=group,
        share=share,
        rank=rank,
        worst=worst,
        stall=worst if isinstance(worst, Stall) else None,
        code=code_of(group, worst, source, tools),
        holder=holder_code(worst, source, tools),
        trend=trend_words(figures.trend) if figures is not None else "",
        gains=tuple(gain_words(figures.gains)) if figures is not None else (),
        grouped_by=tuple((name, value) for name, _, value in (part.partition("=") for part in details.parts)),
        affected=details.affected,
        spread=spread(
            latest, group.count, lambda: [(one.began_wall_ns, one.duration_ns) for one in details.history]
        )
        if group.max_ns
        else None,
        flame=flame(with_worst.values()),
        holding=holding_flame(with_worst.values()),
        own=Document(_own(report, worst)),
        latest=tuple(latest[:LATEST]),
        sessions=tuple(report.sessions),
        remark=source.remarks().get(fingerprint, Remark()),
    )


def _own(report: Report, worst: Issue | None) -> tuple[Block, ...]:
    """The facts of the longest issue, and what its kind adds unless its page draws that."""
    if worst is None or worst.kind.value in DRAWN:
        return ()
    return (circumstances(worst, session_of(report, worst)), *kind_of(worst).parts(worst))


def _rank_of(group: IssueGroup, source: IssueStore) -> tuple[int | None, float]:
    """The bug's rank in the list of its kind, and its share of their time."""
    query = IssueQuery(kind=group.kind)
    first = enumerate(source.groups(query, _RANKS), start=1)
    rank = next((rank for rank, other in first if other.fingerprint == group.fingerprint), None)
    total_ns = source.totals(query).total_ns
    return rank, group.total_ns / total_ns if total_ns else 0.0
