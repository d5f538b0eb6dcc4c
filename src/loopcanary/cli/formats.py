"""The forms of a report, and the one place that writes them to stdout."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from loopcanary.report.model import Report

Shape = Literal["report", "group", "stall", "issue_group", "issue"]

_READY = ("text", "json", "markdown")
_LATER = ("html",)
LIMITS = {"text": 20, "json": 1_000, "markdown": 20}
"""What a report shows at most, unless told otherwise."""


class Format(click.ParamType[str]):
    """The name of a format that is there."""

    name = "format"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name; those to come are told from those that nobody knows."""
        if value in _READY:
            return str(value)
        problem = "reports are not there yet" if value in _LATER else "is no format"
        known = f"{', '.join(_READY[:-1])} or {_READY[-1]}"
        raise click.BadParameter(f"{value} {problem}: use {known}", ctx, param)


format_option: Callable[[Any], Any] = click.option(
    "--format", "form", type=Format(), default="text", metavar="text|json|markdown", help="Default: text."
)


def write(report: Report, form: str, shape: Shape) -> None:
    """Writes the report to stdout."""
    if form == "text":
        _write_text(report, shape)
    elif form == "json":
        from loopcanary.report import as_json

        click.echo(as_json.render(report), nl=False)
    else:
        from loopcanary.report import as_markdown

        click.echo(as_markdown.render(report, current_folder()), nl=False)


def _write_text(report: Report, shape: Shape) -> None:
    from loopcanary.cli.screen import Screen
    from loopcanary.report import as_text

    console = Screen()
    show = {
        "report": as_text.show_report,
        "group": as_text.show_group,
        "stall": as_text.show_stall,
        "issue_group": as_text.show_issue_group,
        "issue": as_text.show_issue,
    }
    show[shape](report, console)


def current_folder() -> str:
    """The folder to which paths are shown relative."""
    try:
        return os.getcwd()  # noqa: PTH109 - a text is wanted, and "" where the folder is gone
    except OSError:
        return ""
