"""One issue of any kind with everything that is known of it."""

from __future__ import annotations

from loopcanary.document.parts import Document
from loopcanary.late_dataclass import dataclass
from loopcanary.model import Issue, Session, StackFrame
from loopcanary.model.loop_frames import work_of
from loopcanary.model.search import IssueQuery
from loopcanary.protocols.stores import IssueStore
from loopcanary.registry import issue_kind, said_of
from loopcanary.report.folding import Fold, folded
from loopcanary.report.issue import circumstances, own_blocks
from loopcanary.ui.pages.code import CodeView, code_view, holder_code, session_of, started_of
from loopcanary.ui.pages.stall import StallSections, ranked_stacks
from loopcanary.ui.pages.traced.trees import IssueTree, tree_of
from loopcanary.ui.tools import Tools


@dataclass(frozen=True, slots=True, kw_only=True)
class StackView:
    """A stack, its work folded to own code, and how much of the issue it held."""

    weight_ns: int
    share: float
    rows: tuple[StackFrame | Fold, ...]
    frames: tuple[StackFrame, ...]
    truncated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuePage:
    """What the template shows."""

    issue: Issue
    noun: str
    """What issues of its bug are counted as."""
    drawn: StallSections | None
    """Of kinds that have drawings of their own."""
    session: Session | None
    code: CodeView | None
    holder: CodeView | None
    """The line of the thread that held what this one waited for."""
    facts: Document
    own: Document
    """What the kind adds, where it is not drawn."""
    tree: IssueTree | None
    """Of kinds that have one, in place of `own`."""
    stacks: tuple[StackView, ...]
    of_bug: int
    """Issues of the same bug."""
    newer: str | None
    """Id of the next issue of the same bug."""
    older: str | None


def issue_page(source: IssueStore, issue_id: str, tools: Tools) -> IssuePage | None:
    """None where there is no such issue."""
    issue = source.issue(issue_id)
    if issue is None:
        return None
    session = session_of(source, issue)
    started_ns = started_of(source, issue)
    newer, older = _neighbours(source, issue)
    tree = tree_of(issue)
    return IssuePage(
        issue=issue,
        noun=issue_kind(issue.kind.value).noun,
        drawn=said_of(issue, "page"),
        session=session,
        code=code_view(issue.culprit, started_ns, tools.read_source) if issue.culprit is not None else None,
        holder=holder_code(issue, source, tools),
        facts=Document((circumstances(issue, session),)),
        own=Document(own_blocks(issue) if tree is None else ()),
        tree=tree,
        stacks=_stacks(issue),
        of_bug=source.totals(IssueQuery(fingerprint=issue.fingerprint)).issues,
        newer=newer,
        older=older,
    )


def _stacks(issue: Issue) -> tuple[StackView, ...]:
    """Heaviest first."""
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
