"""`loopcanary import`: takes bundles into a store."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from loopcanary.cli.opening import store_option
from loopcanary.cli.refusals import refuse
from loopcanary.registry import IMPORTERS, REGISTRY
from loopcanary.words.text import count_of

if TYPE_CHECKING:
    from loopcanary.protocols.plugins import Importer
    from loopcanary.store import Intake, TakenIn


@click.command(short_help="Take bundles of other stores into this one.")
@click.argument("bundles", metavar="BUNDLE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@store_option
def command(*, bundles: tuple[Path, ...], store: Path | None) -> int:
    """Take bundles of other stores into this one.

    Takes all of them, or none if one is damaged or no bundle. Known stalls stay as they are, so the same
    bundle twice adds nothing. Makes the store if there is none.
    """
    from loopcanary.assembly.store import open_store
    from loopcanary.config import load
    from loopcanary.store import find

    config = load(store=store)
    now_wall_ns = time.time_ns()

    def gather(intake: Intake) -> None:
        for bundle in bundles:
            _importer_of(bundle).read(bundle, intake, now_wall_ns=now_wall_ns)

    target = open_store(find(config.store).folder, config)
    try:
        taken = target.take_in(gather)
        hidden = target.maintenance.unreadable()
    finally:
        target.close()
    click.echo(f"{target.folder}: {_words(taken)}.")
    for line in hidden:
        refuse(line)
    if taken.too_old:
        refuse(
            f"{count_of(taken.too_old, 'stall')} of these began before what this store keeps "
            "(retention_age): they go with its next sweep; --store names another store"
        )
    return 0


def _importer_of(file: Path) -> Importer:
    """The first that recognises the file; else that of bundles, which says what is wrong with it."""
    importers: list[Importer] = [importer for _, importer in REGISTRY.loaded(IMPORTERS)]
    return next((one for one in importers if one.recognises(file)), importers[0])


def _words(taken: TakenIn) -> str:
    words = f"{count_of(taken.stalls, 'new stall')}"
    if taken.issues:
        words += f" and {count_of(taken.issues, 'other issue')}"
    words += f", {count_of(taken.sessions, 'run')}"
    if taken.remarks:  # one may say that a bug is to be ignored, which then is in no list any more
        words += f", {count_of(taken.remarks, 'remark')} on bugs"
    if taken.updated:
        words += f"; {count_of(taken.updated, 'stall')} had ended since"
    if taken.stalls_known:
        words += f"; {count_of(taken.stalls_known, 'stall')} had been there"
    return words
