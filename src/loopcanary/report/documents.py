"""The document of a report, by what it is about."""

from __future__ import annotations

from loopcanary.document.parts import Document
from loopcanary.model.search import IssueGroup
from loopcanary.report.bug import bug_document
from loopcanary.report.issue import issue_blocks, session_of
from loopcanary.report.model import Report
from loopcanary.report.overview import overview


def document_of(report: Report, *, in_detail: bool = False) -> Document:
    """The report as a document. `in_detail`: the overview with everything about each bug's longest stall."""
    about = report.about
    if about is None:
        return overview(report, in_detail=in_detail)
    if isinstance(about, IssueGroup):
        return bug_document(report, about)
    return Document(issue_blocks(about, session_of(report, about), report.details))
