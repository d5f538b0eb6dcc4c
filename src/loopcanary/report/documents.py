"""The document of a report, by what was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from loopcanary.report.bug import bug_document, session_of
from loopcanary.report.issue import issue_bug_document, issue_document
from loopcanary.report.overview import overview
from loopcanary.report.stall import stall_document

if TYPE_CHECKING:
    from loopcanary.document.parts import Document
    from loopcanary.report.model import Report

Shape = Literal["report", "group", "stall", "issue_group", "issue"]


def document_of(report: Report, shape: Shape, *, in_detail: bool = False) -> Document:
    """The report as a document. `in_detail`: the overview with everything about each bug's longest stall."""
    if shape == "group":
        return bug_document(report)
    if shape == "stall":
        return stall_document(report.stalls[0], session_of(report, report.stalls[0]))
    if shape == "issue_group":
        return issue_bug_document(report)
    if shape == "issue":
        return issue_document(report)
    return overview(report, in_detail=in_detail)
