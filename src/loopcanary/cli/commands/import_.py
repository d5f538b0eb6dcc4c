"""`loopcanary import`: takes bundles, and what other monitors wrote, into a store."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from loopcanary.cli.opening import become_owner, store_option
from loopcanary.cli.refusals import BAD_USE, refuse
from loopcanary.registry import IMPORTERS, REGISTRY
from loopcanary.words.text import count_of, printable

if TYPE_CHECKING:
    from loopcanary.assembly.importing import TextIntake
    from loopcanary.importers.sources import Bounds
    from loopcanary.protocols.plugins import Importer
    from loopcanary.store import Intake, TakenIn

_NAMES_MAX = 5
_LISTED = "`loopcanary import --list` lists what can be imported; nothing was changed"


@click.command(short_help="Import bundles, and logs of Android's monitors, into a store.")
@click.argument("files", metavar="FILE...", nargs=-1, type=click.Path(path_type=Path, allow_dash=True))
@store_option
@click.option(
    "--concern",
    multiple=True,
    metavar="PACKAGE",
    help="Java package of the app's own code, where culprits are sought. Default: all but known libraries.",
)
@click.option("--list", "is_list", is_flag=True, help="List what can be imported, and exit.")
def command(*, files: tuple[Path, ...], store: Path | None, concern: tuple[str, ...], is_list: bool) -> int:
    """Import bundles of other stores, and logs of other monitors, into this store.

    FILE: a bundle, a text, a zip of texts, a folder, or - for standard input; recognised by its
    content.

    Imports all of them, or none if a bundle is damaged or a file has no known content. Records that the store
    has already stay as they are, so importing a file twice adds nothing. Makes the store if it is missing.
    """
    from loopcanary.assembly.importing import TextIntake, unread_words
    from loopcanary.assembly.store import open_store
    from loopcanary.config import load
    from loopcanary.importers.sources import Bounds, TooMuchError
    from loopcanary.store import find

    if is_list:
        return _list()
    if not files:
        raise click.UsageError("Missing argument 'FILE...'.")
    config = load(store=store)
    now_wall_ns, bounds = time.time_ns(), Bounds()
    texts: list[TextIntake] = []

    def gather(intake: Intake) -> None:
        texts.append(TextIntake(intake, concern or config.concern, now_wall_ns))
        for file in files:
            _take(file, intake, texts[0], bounds, now_wall_ns)
        texts[0].done()

    target = open_store(find(config.store).folder, config)
    become_owner([target])
    try:
        taken = target.take_in(gather)
        hidden = target.maintenance.unreadable()
    except TooMuchError as error:
        refuse(f"{error}; nothing was changed")
        return BAD_USE
    finally:
        target.close()
    click.echo(f"{target.folder}: {_words(taken)}.")
    for line in (*_about(texts[0], bounds), *unread_words(texts[0].unread), *hidden):
        refuse(printable(line, 300))
    if taken.too_old:
        refuse(
            f"{count_of(taken.too_old, 'stall')} of these began before what this store keeps "
            "(retention): they go with its next sweep; --store names another store"
        )
    return 0


def _list() -> int:
    for one, importer in REGISTRY.loaded(IMPORTERS):
        click.echo(f"{one.name:<16}{printable(getattr(importer, 'words', ''), 200)}".rstrip())
    return 0


def _take(file: Path, intake: Intake, texts: TextIntake, bounds: Bounds, now_wall_ns: int) -> None:
    """Gives the file to the importer that knows it. BundleError: no importer does."""
    from zipfile import is_zipfile

    from loopcanary.bundles.layout import BundleError
    from loopcanary.importers.sources import text_of
    from loopcanary.importers.sources import texts as texts_at

    if str(file) == "-":
        for text in text_of("standard input", bounds.take(sys.stdin.buffer, "standard input")):
            texts.take(text)
        return
    importers: list[Importer] = [one for _, one in REGISTRY.loaded(IMPORTERS) if hasattr(one, "recognises")]
    known = None if file.is_dir() else next((one for one in importers if one.recognises(file)), None)
    if known is not None:
        known.read(file, intake, now_wall_ns=now_wall_ns)
        return
    found = sum(texts.take(text) for text in texts_at(file, bounds))
    if not found and not file.is_dir():
        if file.is_file() and not is_zipfile(file):
            raise BundleError(f"{file} cannot be imported: it is neither a zip nor a known text; {_LISTED}")
        importers[0].read(file, intake, now_wall_ns=now_wall_ns)  # which says what is wrong with it


def _about(texts: TextIntake, bounds: Bounds) -> list[str]:
    """Lines about what was left out."""
    lines = bounds.skipped[:_NAMES_MAX]
    if len(bounds.skipped) > _NAMES_MAX:
        lines.append(f"and {len(bounds.skipped) - _NAMES_MAX:,} more files that were not read whole")
    if texts.empty:
        names = ", ".join(texts.empty[:_NAMES_MAX])
        more = ", ..." if len(texts.empty) > _NAMES_MAX else ""
        lines.append(f"{count_of(len(texts.empty), 'text')} without known content: {names}{more}")
    return lines


def _words(taken: TakenIn) -> str:
    words = f"{count_of(taken.stalls, 'new stall')}"
    if taken.issues:
        words += f" and {count_of(taken.issues, 'other issue')}"
    words += f", {count_of(taken.sessions, 'run')}"
    if taken.remarks:  # one may say that a bug is to be ignored, which then is in no list any more
        words += f", {count_of(taken.remarks, 'note')} on bugs"
    if taken.updated:
        words += f"; {count_of(taken.updated, 'stall')} updated, which ended since"
    if taken.stalls_known:
        words += f"; {count_of(taken.stalls_known, 'stall')} already in the store"
    return words
