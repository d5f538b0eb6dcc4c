"""`loopcanary bundle`: chosen stalls with the facts of their sessions in one file."""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from loopcanary.bundles.layout import ALL, CLASSES
from loopcanary.cli import sending
from loopcanary.cli.opening import opened, reads_stores
from loopcanary.cli.output import STDOUT, made_by, opened_output
from loopcanary.cli.param_types import WORD, Parsed
from loopcanary.cli.refusals import NOTHING_FOUND, refuse
from loopcanary.cli.selecting import Choice, choice_options
from loopcanary.model import StallState
from loopcanary.ui.sources import as_one, session_named
from loopcanary.words.text import count_of

if TYPE_CHECKING:
    from loopcanary.bundles.redaction import Redactor
    from loopcanary.bundles.writing import Contents, Written
    from loopcanary.protocols.stores import IssueStore

_KEY_NAME = "redaction.key"


def _classes(text: str) -> tuple[str, ...]:
    asked = tuple(word.strip() for word in text.split(","))
    for word in asked:
        if word not in (*CLASSES, ALL):
            raise ValueError(f"{word!r} cannot be replaced: use {', '.join(CLASSES)} or {ALL}")
    return asked


@click.command(short_help="Pack the chosen stalls into one file, for another store.")
@reads_stores
@click.option("--output", "-o", type=WORD, metavar="FILE", help="Write to this file.")
@click.option("--send", type=WORD, metavar="URL", help="Send it by HTTP POST, repeated until acknowledged.")
@click.option("--delete", is_flag=True, help="With --send: delete here what the receiver acknowledged.")
@click.option(
    "--redact",
    type=Parsed("classes", _classes),
    default=(),
    metavar="WHAT,...",
    help=f"Replace {', '.join(CLASSES)}, or {ALL}; each choice also removes sentences and source lines.",
)
@click.option(
    "--redact-key",
    type=WORD,
    metavar="FILE",
    help="File with the key of the replacements. Default: a key of your own, made once.",
)
@choice_options
def command(
    *,
    stores: tuple[Path, ...],
    output: str | None,
    send: str | None,
    delete: bool,
    redact: tuple[str, ...],
    redact_key: str | None,
    **asked: Any,
) -> int:
    """Pack the chosen stalls into one file, for another store.

    A zip with the stalls and other issues, the facts of their runs, and the notes on their bugs; `loopcanary
    import` reads it. docs/how-to/bundles.md says what --redact replaces, and what a receiver of --send does.
    """
    from loopcanary.bundles.writing import write_bundle

    _check(output, send, delete)
    redactor = redactor_of(redact, redact_key)
    with opened(stores, live=not delete, writes=delete) as found:
        source = as_one([store.reader for store in found])
        contents = _with_something(_contents_of(source, Choice(**asked).in_full(found)))
        if contents is None:
            refuse("no stall matches, nothing was written")
            return NOTHING_FOUND
        with tempfile.TemporaryFile() if send else opened_output(str(output)) as out:
            written = write_bundle(out, contents, made_by=made_by(), redactor=redactor)
            if send:
                sending.send(out, send, os.environ, lambda line: click.echo(line, err=True))
        words = _words(written)
        if delete:
            over = [(one, state.value) for one, state in written.issues if state is not StallState.ONGOING]
            words += f"; {sum(store.maintenance.delete_as_seen(over) for store in found):,} deleted here"
    if output != STDOUT:
        click.echo(f"{sending.shown(send) if send else output}: {words}.")
    return 0


def _check(output: str | None, send: str | None, delete: bool) -> None:
    if (output is None) == (send is None):
        raise click.UsageError("name a file with --output, or a receiver with --send")
    if delete and send is None:
        raise click.UsageError("--delete needs --send: it deletes what a receiver has acknowledged")
    if output == STDOUT and sys.stdout.isatty():
        raise click.UsageError("a bundle is binary, and a terminal cannot show it: name a file with --output")
    if send is not None:
        sending.check(send)


def _with_something(contents: Contents) -> Contents | None:
    """The contents; None where no issue is in them."""
    issue = next(contents.issues, None)
    return None if issue is None else replace(contents, issues=chain((issue,), contents.issues))


def _words(written: Written) -> str:
    words = count_of(written.stalls, "stall")
    if others := len(written.issues) - written.stalls:
        words += f" and {count_of(others, 'other issue')}"
    return f"{words} of {count_of(written.sessions, 'run')}"


def redactor_of(redact: tuple[str, ...], redact_key: str | None) -> Redactor:
    """The redactor of these classes. BundleError: there is no key."""
    from loopcanary.bundles.pseudonyms import load_key
    from loopcanary.bundles.redaction import Redactor
    from loopcanary.store.location import user_folder

    if not redact:
        return Redactor((), b"")
    own = redact_key is None
    path = user_folder() / _KEY_NAME if redact_key is None else Path(redact_key)
    return Redactor(redact, load_key(path, make=own))


def _contents_of(source: IssueStore, choice: Choice) -> Contents:
    from loopcanary.bundles.writing import Contents

    return Contents(
        issues=choice.issues(source),
        session=lambda session_id: session_named(source, session_id),
        remarks=source.remarks(),
    )
