"""`loopcanary methods`: exact calls of a running program."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import IO, TYPE_CHECKING

import click

from loopcanary.cli.output import (
    STDOUT,
    made_by,
    missing_for_pages,
    opened_output,
    output_option,
)
from loopcanary.cli.param_types import WORD, duration_of, number
from loopcanary.cli.refusals import refuse, refuse_unseen
from loopcanary.facts import working_folder
from loopcanary.model.outside import Unseen
from loopcanary.model.units import format_duration

if TYPE_CHECKING:
    from loopcanary.document.parts import Document
    from loopcanary.exporters import Format
    from loopcanary.model.calls import Recording

_NS = 1_000_000_000
_LONGEST_S = 3_000.0
_OWN = ("text", "json", "html")
_WITH_EACH = ("perfetto", "chrome")
"""Formats that show time."""


@click.command(short_help="Trace the calls of a running program for a while.")
@click.argument("pid", type=number(int, 1), metavar="PID")
@click.argument("packages", nargs=-1, type=WORD, metavar="[PACKAGE]...")
@click.option(
    "--for", "length", metavar="DURATION", type=WORD, default="10s", help="For how long. Default: 10s."
)
@click.option(
    "--format",
    "form",
    metavar="FORMAT",
    default="text",
    help="text, json, html, or one of `loopcanary export`. Default: text.",
)
@output_option
@click.option(
    "--timeout",
    metavar="DURATION",
    type=WORD,
    default="10s",
    help="Give up if tracing does not begin within this time. Default: 10s.",
)
def command(*, pid: int, packages: tuple[str, ...], length: str, form: str, output: str, timeout: str) -> int:
    """Trace the calls of a running program for a while: which functions, how often, how long.

    The program must be watched by loopcanary. PACKAGE as in `run --methods`: a package or module, a glob, `.`
    for the program's own code (the default), each left out if it begins with !. Ctrl-C ends the tracing
    early, and shows the calls so far.
    """
    if form == "html" and (missing := missing_for_pages()):
        return refuse(missing)
    writer = None if form in _OWN else _writer(form, output)
    from loopcanary.assembly.errands.recording import record

    chosen = [part for one in packages for part in one.split(",") if part] or ["."]
    if sys.stderr.isatty():
        click.echo("tracing; Ctrl-C ends it early, and shows the calls so far", err=True)
    seconds, timeout_s = _seconds(length, "--for"), _seconds(timeout, "--timeout")
    with _until_ctrl_c() as wait:
        found = record(pid, chosen, seconds, timeout_s, wait, each=form in _WITH_EACH)
    if isinstance(found, Unseen):
        return refuse_unseen(found)
    for notice in found.notices:
        click.echo(notice, err=True)
    return _write(found, form, output, writer)


def _seconds(text: str, option: str) -> float:
    seconds = duration_of(text, option) / _NS
    if not 0 < seconds <= _LONGEST_S:
        most = format_duration(int(_LONGEST_S * _NS))
        raise click.BadParameter(
            f"{text} is out of range: write more than 0, and at most {most}", param_hint=option
        )
    return seconds


@contextmanager
def _until_ctrl_c() -> Iterator[Callable[[float], bool]]:
    """Gives a wait that Ctrl-C ends, wherever it hits, so that what was read by then is not lost."""
    pressed: list[int] = []

    def press(number: int, _: object) -> None:
        if pressed:
            raise KeyboardInterrupt
        pressed.append(number)

    before = signal.signal(signal.SIGINT, press)

    def wait(seconds: float) -> bool:
        time.sleep(seconds)
        return not pressed

    try:
        yield wait
    finally:
        signal.signal(signal.SIGINT, before)


def _writer(form: str, output: str) -> Format:
    from loopcanary.exporters import find, names

    found = find(form)
    if found is None:
        raise click.BadParameter(
            f"{form!r} is not a format: use {', '.join([*_OWN, *names()])}", param_hint="--format"
        )
    if output == STDOUT and found.binary and sys.stdout.isatty():
        raise click.UsageError(f"{form} is binary, and a terminal cannot show it: name a file with --output")
    return found


def _write(recording: Recording, form: str, output: str, writer: Format | None) -> int:
    if writer is not None:
        from loopcanary.assembly.errands.recording import exported

        with opened_output(output) as out:
            writer.write(exported(recording), out)
        return 0
    from loopcanary.report.recording import recording_document, render_json

    with opened_output(output) as out:
        if form == "html":
            out.write(_page(recording))
        elif form == "json":
            out.write(render_json(recording).encode())
        else:
            _show(recording_document(recording), None if output == STDOUT else out)
    return 0


def _page(recording: Recording) -> bytes:
    from loopcanary.ui.document import document
    from loopcanary.ui.pages.calls import calls_page

    return document(calls_page(recording), working_folder(), made_by())


def _show(document: Document, out: IO[bytes] | None) -> None:
    from loopcanary.cli.screen import Screen
    from loopcanary.report import text

    file = None if out is None else TextIOWrapper(out, encoding="utf-8")
    text.show(document, Screen(file))
    if file is not None:
        file.detach()
