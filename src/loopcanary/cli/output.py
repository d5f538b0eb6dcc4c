"""Where a command writes, and in which form: standard output or a file; text, JSON, Markdown or a page."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from loopcanary.cli.param_types import WORD, Parsed
from loopcanary.facts import working_folder

if TYPE_CHECKING:
    from rich.console import Console

    from loopcanary.report.model import Report
    from loopcanary.ui.tools import Tools

STDOUT = "-"

output_option: Callable[[Any], Any] = click.option(
    "--output",
    "-o",
    type=WORD,
    metavar="FILE",
    default=STDOUT,
    help="Write to this file. Default: standard output.",
)


@contextmanager
def opened_output(path: str) -> Iterator[IO[bytes]]:
    """Opens standard output, a device, a pipe, or a file, which appears when it is complete and which other
    users cannot read. ClickException: it cannot be written."""
    if path == STDOUT:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = Path(path)
    try:
        if target.exists() and not target.is_file():
            # A device or a pipe is written to: the rename below would replace it.
            with target.open("wb") as out:
                yield out
            return
        part = target.with_name(f".{target.name}.{os.getpid()}.part")
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as out:
                yield out
            part.replace(target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror or error}") from error


_FORMS = ("text", "json", "markdown")
LIMITS = {
    "text": 20,
    "json": 1_000,
    "markdown": 20,
    "html": 20,
    "github": 100,
    "sarif": 1_000,
    "junit": 1_000,
}


def format_option(*more: str) -> Callable[[Any], Any]:
    """The option `--format`: the forms that every report has, and these."""
    forms = (*_FORMS, *more)

    def known(text: str) -> str:
        if text in forms:
            return text
        problem = "is not a format of this command" if text in LIMITS else "is not a format"
        raise ValueError(f"{text} {problem}: use {', '.join(forms[:-1])} or {forms[-1]}")

    return click.option(
        "--format",
        "form",
        type=Parsed("format", known),
        default="text",
        metavar="|".join(forms),
        help="Default: text.",
    )


def write(report: Report, form: str, output: str = STDOUT) -> None:
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

        return markdown.render(document_of(report, in_detail=True), working_folder())
    from loopcanary.cli.screen import Screen

    text = io.StringIO()
    show(report, Screen(text))
    return text.getvalue()


def show(report: Report, console: Console) -> None:
    from loopcanary.report import text
    from loopcanary.report.documents import document_of

    text.show(document_of(report), console)


def missing_for_pages() -> str:
    """Names the library of the pages that is not installed, and what brings it; empty: all are there."""
    try:
        import loopcanary.ui.document  # noqa: F401 - whether it can be imported is the question
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in ("jinja2", "markupsafe"):
            raise
        return f'--format html needs {missing}: pip install "loopcanary[ui]"'
    return ""


def made_by() -> str:
    """`loopcanary 0.1.0`."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"loopcanary {version('loopcanary')}"
    except PackageNotFoundError:
        return "loopcanary"


def page_tools() -> Tools:
    """The functions that pages need of other parts."""
    from loopcanary.assembly.explanations import delays, longer, source_reader, why_grouped
    from loopcanary.ui.tools import Tools

    return Tools(
        read_source=source_reader(),
        why_grouped=why_grouped,
        delays=delays,
        longer=longer,
        doctor=_doctor,
    )


def _doctor() -> Iterator[tuple[str, str, str]]:
    from loopcanary.assembly.doctor import doctor_facts  # most servers never show that page

    return doctor_facts()
