"""`loopcanary doctor`: what works here, what does not, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from loopcanary.cli.opening import found_stores, reads_stores
from loopcanary.words.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rich.text import Text

_STYLES = {"ok": "green", "off": "yellow", "problem": "bold red"}
_FAILED = 1
_STATUS = 11
"""Columns of a status, with the blanks around it."""
_LEAST = 20


@click.command(short_help="Show what works here, what does not, and why.")
@reads_stores
@click.option(
    "--self-test/--no-self-test",
    default=True,
    help="Stall a child program, and check that the stall is detected.",
)
@click.option(
    "--patches",
    type=int,
    is_flag=False,
    flag_value=0,
    metavar="[PID]",
    help="Show instead what loopcanary has replaced in this process, or replaces in a program of asyncio.",
)
def command(*, stores: tuple[Path, ...], self_test: bool, patches: int | None) -> int:
    """Show what works here, what does not, and why; also whether the named stores can be read.

    Exit status 1 if something that should work does not.
    """
    from loopcanary.assembly import doctor
    from loopcanary.cli.screen import Screen

    folders = [store.folder for store in found_stores(stores)] if stores else ()
    console = Screen()
    # A named store may be the one in use.
    facts = (
        list(dict.fromkeys(doctor.doctor_facts(folders))) if patches is None else doctor.patches_of(patches)
    )
    if self_test and patches is None:
        facts.append(doctor.self_test())
    for line in _lines(facts, console.width if console.is_terminal else None):
        console.print(line, soft_wrap=True)
    return _FAILED if any(status == "problem" for _, status, _ in facts) else 0


def _lines(facts: Iterable[tuple[str, str, str]], width: int | None) -> Iterable[Text]:
    """Wraps details beside their names to the terminal's width; None: a line each."""
    from rich.text import Text

    rows = list(facts)
    names = max((len(name) for name, _, _ in rows), default=0)
    for name, status, detail in rows:
        yield Text.assemble(
            f"{printable(name):<{names}}  ",
            (f"{printable(status):<7}", _STYLES.get(status, "")),
            f"  {_beside(names + _STATUS, printable(detail), width)}" if detail else "",
        )


def _beside(indent: int, words: str, width: int | None) -> str:
    from textwrap import wrap

    if width is None or width < indent + _LEAST:
        return words
    found = wrap(words, width - indent, break_long_words=False, break_on_hyphens=False)
    return f"\n{'':{indent}}".join(found)
