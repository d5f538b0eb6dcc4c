"""An issue as text, Markdown or JSON, to be sent to others."""

from __future__ import annotations

from loopcanary.document import markdown
from loopcanary.document.layout import Sheet, lines
from loopcanary.document.paint import painted
from loopcanary.protocols.stores import IssueStore
from loopcanary.report import as_json
from loopcanary.report.documents import document_of
from loopcanary.report.model import of_issue
from loopcanary.ui.tools import Tools

_WIDTH = 110


def exported(
    source: IssueStore, tools: Tools, issue_id: str, form: str, now_wall_ns: int
) -> tuple[str, str] | None:
    """(media type, text); None where there is no such issue or form."""
    issue = source.issue(issue_id)
    if issue is None or form not in ("text", "markdown", "json"):
        return None
    report = of_issue(source, issue, now_wall_ns=now_wall_ns, explain=tools.why_grouped)
    if form == "json":
        return "application/json", as_json.render(report)
    document = document_of(report)
    if form == "markdown":
        return "text/plain; charset=utf-8", markdown.render(document)
    return "text/plain; charset=utf-8", painted(lines(document, Sheet(width=_WIDTH)))
