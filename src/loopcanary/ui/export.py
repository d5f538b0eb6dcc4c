"""A stall to be sent to somebody: text, Markdown, JSON."""

from __future__ import annotations

import io

from rich.console import Console

from loopcanary.report import as_json, as_markdown, as_text
from loopcanary.report.model import of_stall
from loopcanary.ui.sources import Source

_WIDTH = 110


def exported(source: Source, stall_id: str, form: str, now_wall_ns: int) -> tuple[str, str] | None:
    """(media type, text); None where there is no such stall or form."""
    stall = source.stall(stall_id)
    if stall is None or form not in ("text", "markdown", "json"):
        return None
    report = of_stall(source, stall, now_wall_ns=now_wall_ns)
    if form == "json":
        return "application/json", as_json.render(report)
    if form == "markdown":
        return "text/plain; charset=utf-8", as_markdown.render(report)
    written = io.StringIO()
    console = Console(
        file=written, width=_WIDTH, markup=False, emoji=False, highlight=False, color_system=None
    )
    as_text.show_stall(report, console)
    return "text/plain; charset=utf-8", written.getvalue()
