"""One bug of any kind: where, why, what to do, what that buys, and how its issues spread."""

from __future__ import annotations

from loopcanary.document.parts import Block, Document
from loopcanary.late_dataclass import dataclass
from loopcanary.model import Issue, Session, Stall
from loopcanary.model.search import IssueGroup, IssueQuery, Remark, of_type
from loopcanary.protocols.stores import IssueStore
from loopcanary.registry import issue_kind
from loopcanary.report.figures.affected import Affected
from loopcanary.report.figures.gain_words import gain_words
from loopcanary.report.figures.trend import trend_words
from loopcanary.report.issue import circumstances, own_blocks, session_of
from loopcanary.report.model import Report, of_bug
from loopcanary.ui.pages.code import CodeView, code_of, holder_code
from loopcanary.ui.pages.flame import Flame, flame, holding_flame
from loopcanary.ui.pages.spread import POINTS_MAX, Spread, spread
from loopcanary.ui.tools import Tools

LATEST = 20
_RANKS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class BugPage:
    """What the template shows."""

    group: IssueGroup
    share: float
    """Of the time of all issues of its kind in the stores."""
    rank: int | None
    """Among its kind; None: it is not among the first _RANKS."""
    worst: Issue | None
    stall: Stall | None
    """The same, where it is one."""
    code: CodeView | None
    holder: CodeView | None
    """The line of the thread that held what this one waited for."""
    trend: str
    gains: tuple[str, ...]
    grouped_by: tuple[tuple[str, str], ...]
    affected: Affected | None
    spread: Spread | None
    flame: Flame
    holding: Flame | None
    """Of the threads that held what the stalled one waited for."""
    own: Document
    """What the kind adds about the longest one."""
    latest: tuple[Issue, ...]
    sessions: tuple[Session, ...]
    remark: Remark


def bug_page(source: IssueStore, fingerprint: str, tools: Tools, now_wall_ns: int) -> BugPage | None:
    """None where there is no such bug."""
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
        grouped_by=tuple(_pair(part) for part in details.parts),
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
    """Facts of the longest issue and what its kind adds; what its page draws is there."""
    if worst is None or issue_kind(worst.kind.value).page is not None:
        return ()
    return (circumstances(worst, session_of(report, worst)), *own_blocks(worst))


def _rank_of(group: IssueGroup, source: IssueStore) -> tuple[int | None, float]:
    """As the list of bugs of its kind has it, and its share of their time."""
    query = IssueQuery(kind=group.kind)
    first = enumerate(source.groups(query, _RANKS), start=1)
    rank = next((rank for rank, other in first if other.fingerprint == group.fingerprint), None)
    total_ns = source.totals(query).total_ns
    return rank, group.total_ns / total_ns if total_ns else 0.0


def _pair(part: str) -> tuple[str, str]:
    name, _, value = part.partition("=")
    return name, value
