"""A bug and an issue of any kind but stalls: what reports say about it, as a page."""

from __future__ import annotations

from dataclasses import dataclass

from loopcanary.document.parts import Document
from loopcanary.model import LagIssue, Stall
from loopcanary.model.search import IssueGroup, IssueQuery, Remark
from loopcanary.protocols.stores import IssueStore
from loopcanary.report.documents import document_of
from loopcanary.report.model import of_bug, of_issue
from loopcanary.ui.tools import Tools

LATEST = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class BugPage:
    """What the template shows."""

    group: IssueGroup
    document: Document
    latest: tuple[LagIssue, ...]
    remark: Remark


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuePage:
    """What the template shows."""

    issue: LagIssue
    group: IssueGroup | None
    document: Document


def bug_page(source: IssueStore, fingerprint: str, tools: Tools, now_wall_ns: int) -> BugPage | None:
    """One bug; None where there is no such bug, or its issues are stalls."""
    report = of_bug(source, fingerprint, limit=LATEST, now_wall_ns=now_wall_ns, explain=tools.why_grouped)
    if report is None or not report.issue_groups:
        return None
    return BugPage(
        group=report.issue_groups[0],
        document=document_of(report),
        latest=tuple(report.issues),
        remark=source.remarks().get(fingerprint, Remark()),
    )


def issue_page(source: IssueStore, issue_id: str, tools: Tools, now_wall_ns: int) -> IssuePage | None:
    """One issue; None where there is none, or it is a stall."""
    issue = source.issue(issue_id)
    if issue is None or isinstance(issue, Stall):
        return None
    report = of_issue(source, issue, now_wall_ns=now_wall_ns, explain=tools.why_grouped)
    query = IssueQuery(fingerprint=issue.fingerprint).others
    return IssuePage(
        issue=issue,
        group=next(iter(source.groups(query, 1)), None),
        document=document_of(report),
    )
