"""The forms of a report, and the one place that writes them."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Any

import click

from loopcanary.cli.output import STDOUT, opened_output

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from loopcanary.report.model import Report

_FORMS = ("text", "json", "markdown")
LIMITS = {
    "text": 20,
    "json": 1_000,
    "markdown": 20,
    "html": 20,
    "github": 100,
    "sarif": 1_000,
    "gitlab": 1_000,
    "junit": 1_000,
}
"""What a report shows at most by default."""


class FormatName(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.4
    """The name of a format that is there."""

    name = "format"

    def __init__(self, forms: tuple[str, ...]) -> None:
        self._forms = forms

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in self._forms:
            return str(value)
        problem = "is not for this command" if value in LIMITS else "is no format"
        known = f"{', '.join(self._forms[:-1])} or {self._forms[-1]}"
        raise click.BadParameter(f"{value} {problem}: use {known}", ctx, param)


def format_option(*more: str) -> Callable[[Any], Any]:
    """The option `--format`, with these beside the forms that every report has."""
    forms = (*_FORMS, *more)
    return click.option(
        "--format",
        "form",
        type=FormatName(forms),
        default="text",
        metavar="|".join(forms),
        help="Default: text.",
    )


def write(report: Report, form: str, output: str = STDOUT) -> None:
    """Writes the report to stdout or a file."""
    if form == "text" and output == STDOUT:
        from loopcanary.cli.screen import Screen

        show(report, Screen())
        return
    if output == STDOUT:
        click.echo(_rendered(report, form), nl=False)
        return
    with opened_output(output) as out:
        out.write(_rendered(report, form).encode("utf-8", "backslashreplace"))


def _rendered(report: Report, form: str) -> str:
    if form == "json":
        from loopcanary.report import as_json

        return as_json.render(report)
    if form == "markdown":
        from loopcanary.document import markdown
        from loopcanary.report.documents import document_of

        return markdown.render(document_of(report, in_detail=True), current_folder())
    from loopcanary.cli.screen import Screen

    text = io.StringIO()
    show(report, Screen(text))
    return text.getvalue()


def show(report: Report, console: Console) -> None:
    from loopcanary.report import text
    from loopcanary.report.documents import document_of

    text.show(document_of(report), console)


def current_folder() -> str:
    """The folder to which paths are shown relative."""
    try:
        return os.getcwd()  # noqa: PTH109 - a text is wanted, and "" where the folder is gone
    except OSError:
        return ""


def missing_for_pages() -> str:
    """Which library that pages are made with is not installed, and what brings it; empty where all are."""
    try:
        import loopcanary.ui.document  # noqa: F401 - whether it can be imported is the question
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in ("jinja2", "markupsafe"):
            raise
        return f'--format html needs {missing}: pip install "loopcanary[ui]"'
    return ""
