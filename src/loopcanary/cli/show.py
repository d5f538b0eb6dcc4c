"""`loopcanary show`: everything about one bug or one stall."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from loopcanary.cli import refuse
from loopcanary.cli.formats import LIMITS, format_option, write
from loopcanary.cli.opening import NOTHING_FOUND, opened, store_option
from loopcanary.cli.words import Word
from loopcanary.model.wording import printable

if TYPE_CHECKING:
    from pathlib import Path

    from loopcanary.store import Store

_CANDIDATES_MAX = 5
_VERSIONS = ("2:", "1:")
"""What fingerprints begin with, the present one first (docs/diagnosis.md)."""


@click.command(short_help="Show everything about one bug or one stall.")
@click.argument("which", metavar="FINGERPRINT_OR_ID", type=Word())
@store_option
@format_option
def command(which: str, store: Path | None, form: str) -> int:
    """Show everything about one bug (by its fingerprint) or one stall (by its id).

    The start of either is enough where only one begins so.
    """
    with opened(store) as source:
        if source is None:
            return NOTHING_FOUND
        fingerprints, ids = _matches(source, which)
        match (fingerprints, ids):
            case ([], []):
                refuse(
                    f"no fingerprint or id in {source.folder} begins with {printable(which, 60)}; "
                    "`loopcanary report` has them at the end of their lines"
                )
                return NOTHING_FOUND
            case ([fingerprint], []):
                _show_group(source, fingerprint, form)
                return 0
            case ([], [stall_id]):
                _show_stall(source, stall_id, form)
                return 0
            case _:
                return refuse(_ambiguity(which, [*fingerprints, *ids]))


def _matches(source: Store, which: str) -> tuple[list[str], list[str]]:
    """Fingerprints and ids that are meant; one that is given in full is the one."""
    ids = source.ids_like(which, _CANDIDATES_MAX + 1)
    if which in ids:
        return [], [which]
    # People leave out the version of a fingerprint.
    starts = [which] if ":" in which else [which, *(version + which for version in _VERSIONS)]
    fingerprints: list[str] = []
    for start in starts:
        found = source.fingerprints_like(start, _CANDIDATES_MAX + 1)
        if start in found:
            return [start], []
        fingerprints = fingerprints or found
    return fingerprints, ids


def _ambiguity(which: str, candidates: list[str]) -> str:
    named = ", ".join(printable(candidate, 60) for candidate in candidates[:_CANDIDATES_MAX])
    more = " and more" if len(candidates) > _CANDIDATES_MAX else ""
    return f"{printable(which, 60)} is the start of several: {named}{more}; write more of it"


def _show_group(source: Store, fingerprint: str, form: str) -> None:
    from loopcanary import assembly
    from loopcanary.report.model import of_group

    report = of_group(
        source,
        fingerprint,
        limit=LIMITS[form],
        now_wall_ns=time.time_ns(),
        explain=assembly.why_grouped,
        delays=assembly.delays,
    )
    write(report, form, "group")


def _show_stall(source: Store, stall_id: str, form: str) -> None:
    from loopcanary.report.model import of_stall

    stall = source.stall(stall_id)
    if stall is not None:
        write(of_stall(source, stall, now_wall_ns=time.time_ns()), form, "stall")
