"""One stall with all its facts."""

from __future__ import annotations

from dataclasses import dataclass

from loopcanary.model import Holder, Session, StackFrame, Stall, ThreadView
from loopcanary.model.search import IssueQuery
from loopcanary.protocols.stores import IssueStore
from loopcanary.report.folding import Fold, folded
from loopcanary.report.surroundings import surroundings_words
from loopcanary.ui.pages.code import CodeView, code_view
from loopcanary.ui.pages.earlier import EarlierView, earlier_view
from loopcanary.ui.pages.flame import Flame, flame
from loopcanary.ui.pages.group import holder_code, session_of, started_of
from loopcanary.ui.pages.timeline import TimelineView, timeline_view
from loopcanary.ui.tools import Tools


@dataclass(frozen=True, slots=True, kw_only=True)
class StackView:
    """A stack, folded to own code, and how much of the stall it held."""

    weight_ns: int
    share: float
    rows: tuple[StackFrame | Fold, ...]
    frames: tuple[StackFrame, ...]
    truncated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadRow:
    """Another thread, as it was when the stall became a hang."""

    thread: ThreadView
    rows: tuple[StackFrame | Fold, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StallPage:
    """What the template shows."""

    stall: Stall
    session: Session | None
    code: CodeView | None
    holder: CodeView | None
    """The line of the thread that held what this one waited for."""
    timeline: TimelineView | None
    earlier: EarlierView | None
    stacks: tuple[StackView, ...]
    threads: tuple[ThreadRow, ...]
    holders: tuple[Holder, ...]
    surroundings: str
    flame: Flame
    of_group: int
    """Stalls of the same bug."""
    newer: str | None
    """Id of the next stall of the same bug."""
    older: str | None


def stall_page(source: IssueStore, stall_id: str, tools: Tools) -> StallPage | None:
    """None where there is no such stall."""
    stall = source.issue(stall_id)
    if not isinstance(stall, Stall):
        return None
    session = session_of(source, stall)
    query = IssueQuery(fingerprint=stall.fingerprint)
    newer, older = _neighbours(source, stall)
    return StallPage(
        stall=stall,
        session=session,
        code=code_view(stall.culprit, started_of(source, stall), tools.read_source)
        if stall.culprit is not None
        else None,
        holder=holder_code(stall, source, tools),
        timeline=timeline_view(stall),
        earlier=earlier_view(stall),
        stacks=tuple(
            StackView(
                weight_ns=stack.weight_ns,
                share=stack.weight_ns / stall.duration_ns if stall.duration_ns else 0.0,
                rows=tuple(folded(stack.frames)),
                frames=stack.frames,
                truncated=stack.truncated,
            )
            for stack in sorted(stall.stacks, key=lambda one: -one.weight_ns)
        ),
        threads=tuple(ThreadRow(thread=one, rows=tuple(folded(one.frames))) for one in stall.threads),
        holders=stall.holders or ((stall.holder,) if stall.holder is not None else ()),
        surroundings=surroundings_words(stall.surroundings) if stall.surroundings is not None else "",
        flame=flame([stall]),
        of_group=source.totals(query).issues,
        newer=newer,
        older=older,
    )


def _neighbours(source: IssueStore, stall: Stall) -> tuple[str | None, str | None]:
    """The next later and the next earlier stall of the same bug."""
    before = IssueQuery(fingerprint=stall.fingerprint, until_wall_ns=stall.began_wall_ns)
    older = next(iter(source.issues(before, 1)), None)
    moments = sorted(
        mark.began_wall_ns
        for mark in source.marks(IssueQuery(since_wall_ns=stall.began_wall_ns + 1), [stall.fingerprint])
    )
    if not moments:
        return None, None if older is None else older.id
    next_one = IssueQuery(
        fingerprint=stall.fingerprint, since_wall_ns=moments[0], until_wall_ns=moments[0] + 1
    )
    newer = next(iter(source.issues(next_one, 1)), None)
    return None if newer is None else newer.id, None if older is None else older.id
