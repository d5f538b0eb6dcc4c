"""One issue of any kind with everything that is known of it."""

from __future__ import annotations

from loopcanary.document.parts import Document
from loopcanary.document.stacks import Fold, folded
from loopcanary.late_dataclass import dataclass
from loopcanary.model import Issue, Session, StackFrame
from loopcanary.model.loop_frames import work_of
from loopcanary.model.search import IssueQuery
from loopcanary.protocols.kinds import kind_of
from loopcanary.protocols.stores import IssueStore
from loopcanary.report.issue import circumstances
from loopcanary.ui.pages.code import CodeView, code_view, holder_code, session_of, started_of
from loopcanary.ui.pages.stall import DRAWN, StallSections, ranked_stacks
from loopcanary.ui.pages.trees import IssueTree, tree_of
from loopcanary.ui.tools import Tools


@dataclass(frozen=True, slots=True, kw_only=True)
class StackView:
    """A stack with its work folded to own code."""

    weight_ns: int
    share: float
    rows: tuple[StackFrame | Fold, ...]
    frames: tuple[StackFrame, ...]
    truncated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuePage:
    issue: Issue
    noun: str
    """The noun that counts the issues of its bug."""
    drawn: StallSections | None
    session: Session | None
    code: CodeView | None
    holder: CodeView | None
    """The line of the thread that held the GIL or lock."""
    facts: Document
    own: Document
    """The part of its kind, unless that is drawn."""
    tree: IssueTree | None
    """The tree of its kind, in place of `own`."""
    stacks: tuple[StackView, ...]
    of_bug: int
    """The number of issues of its bug."""
    newer: str | None
    """The id of the next issue of its bug."""
    older: str | None


def issue_page(source: IssueStore, issue_id: str, tools: Tools) -> IssuePage | None:
    """None: there is no such issue."""
    issue = source.issue(issue_id)
    if issue is None:
        return None
    session = session_of(source, issue)
    started_ns = started_of(source, issue)
    newer, older = _neighbours(source, issue)
    kind, tree, draw = kind_of(issue), tree_of(issue), DRAWN.get(issue.kind.value)
    return IssuePage(
        issue=issue,
        noun=kind.noun,
        drawn=None if draw is None else draw(issue),
        session=session,
        code=code_view(issue.culprit, started_ns, tools.read_source) if issue.culprit is not None else None,
        holder=holder_code(issue, source, tools),
        facts=Document((circumstances(issue, session),)),
        own=Document(() if draw is not None or tree is not None else tuple(kind.parts(issue))),
        tree=tree,
        stacks=_stacks(issue),
        of_bug=source.totals(IssueQuery(fingerprint=issue.fingerprint)).issues,
        newer=newer,
        older=older,
    )


def _stacks(issue: Issue) -> tuple[StackView, ...]:
    return tuple(
        StackView(
            weight_ns=stack.weight_ns,
            share=stack.weight_ns / issue.duration_ns if issue.duration_ns else 0.0,
            rows=tuple(folded(work_of(stack.frames))),
            frames=stack.frames,
            truncated=stack.truncated,
        )
        for stack in (issue.stacks[index] for index in ranked_stacks(issue))
    )


def _neighbours(source: IssueStore, issue: Issue) -> tuple[str | None, str | None]:
    """The next later and the next earlier issue of the same bug."""
    before = IssueQuery(fingerprint=issue.fingerprint, until_wall_ns=issue.began_wall_ns)
    older = next(iter(source.issues(before, 1)), None)
    moments = sorted(
        mark.began_wall_ns
        for mark in source.marks(IssueQuery(since_wall_ns=issue.began_wall_ns + 1), [issue.fingerprint])
    )
    if not moments:
        return None, None if older is None else older.id
    next_one = IssueQuery(
        fingerprint=issue.fingerprint, since_wall_ns=moments[0], until_wall_ns=moments[0] + 1
    )
    newer = next(iter(source.issues(next_one, 1)), None)
    return None if newer is None else newer.id, None if older is None else older.id
