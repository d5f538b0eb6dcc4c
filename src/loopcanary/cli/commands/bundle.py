"""`loopcanary bundle`: chosen stalls with the facts of their sessions in one file."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from loopcanary.cli.bundling import contents_of, made_by, redaction_options, redactor
from loopcanary.cli.opening import opened, reads_stores
from loopcanary.cli.output import STDOUT, opened_output
from loopcanary.cli.refusals import NOTHING_FOUND, refuse
from loopcanary.cli.selecting import Choice, choice_options
from loopcanary.cli.words import Word
from loopcanary.ui.sources import as_one
from loopcanary.words.text import count_of

if TYPE_CHECKING:
    from loopcanary.bundles import Contents, Written


@click.command(short_help="Put chosen stalls into one file, for another store.")
@reads_stores
@click.option("--output", "-o", type=Word(), metavar="FILE", required=True, help="Write to this file.")
@redaction_options
@choice_options
def command(
    *,
    stores: tuple[Path, ...],
    output: str,
    redact: tuple[str, ...],
    redact_key: str | None,
    **asked: Any,
) -> int:
    """Put chosen stalls into one file, for another store.

    A zip with the stalls and other issues, the facts of their runs, and the notes on their bugs; `loopcanary
    import` reads it. docs/bundles.md says what --redact replaces, and by what.
    """
    from loopcanary.bundles import BundleError, write_bundle

    if output == STDOUT and sys.stdout.isatty():
        return refuse("a bundle is no text for a terminal: name a file with --output")
    redaction = redactor(redact, redact_key)
    with opened(stores) as found:
        source = as_one([store.reader for store in found])
        contents = _with_something(contents_of(source, Choice(**asked).in_full(found)))
        if contents is None:
            refuse("no stall matches, nothing was written")
            return NOTHING_FOUND
        with opened_output(output) as out:
            written = write_bundle(out, contents, made_by=made_by(), redaction=redaction)
            if next(contents.issues, None) is not None:
                raise BundleError("this is more than a bundle can hold: choose fewer stalls")
    if output != STDOUT:
        click.echo(f"{output}: {_words(written)}.")
    return 0


def _with_something(contents: Contents) -> Contents | None:
    """The same; None where no issue is in it."""
    issue = next(contents.issues, None)
    return None if issue is None else replace(contents, issues=chain((issue,), contents.issues))


def _words(written: Written) -> str:
    words = count_of(written.stalls, "stall")
    if others := len(written.issues) - written.stalls:
        words += f" and {count_of(others, 'other issue')}"
    return f"{words} of {count_of(written.sessions, 'run')}"
