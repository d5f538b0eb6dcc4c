"""Pages as one file that needs nothing else: to be mailed, or kept with a run of CI."""

from __future__ import annotations

from urllib.parse import quote

from loopcanary.ui.bundling import bundle
from loopcanary.ui.pages.report import ReportPage
from loopcanary.ui.pages.traced.calls import CallsPage
from loopcanary.ui.rendering import STATIC, Renderer


def document(page: ReportPage | CallsPage, folder: str, made_by: str = "loopcanary") -> bytes:
    """The page as HTML, in UTF-8; paths below `folder` relative to it. `made_by`: program and version."""
    # No editor: who reads it may not have the files.
    html = Renderer(folder=folder, editor="").page(
        f"one_file/{'calls' if isinstance(page, CallsPage) else 'report'}.html",
        page=page,
        maker=made_by,
        bundle=bundle(),
        icon="data:image/svg+xml," + quote((STATIC / "icon.svg").read_text(encoding="utf-8")),
        now_wall_ns=page.generated_wall_ns,
    )
    # Undecodable names have lone surrogates, which UTF-8 has not.
    return html.encode("utf-8", "backslashreplace")
