"""The options by which commands choose stalls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from loopcanary.cli.times import Moment
from loopcanary.cli.words import Word
from loopcanary.model.stall import Cause

if TYPE_CHECKING:
    from collections.abc import Callable

_OPTIONS = (
    click.option(
        "--since", type=Moment(), help="Began then or later: 2h (ago), 2026-11-21, 2026-11-21T05:00."
    ),
    click.option("--until", type=Moment(), help="Began before then."),
    click.option(
        "--cause",
        "causes",
        multiple=True,
        type=click.Choice([cause.value for cause in Cause]),
        metavar="CAUSE",
        help="Only this cause, such as lock or native-cpu; can be given several times.",
    ),
    click.option(
        "--text",
        "words",
        multiple=True,
        type=Word(),
        metavar="TEXT",
        help="Has this in a name, path or source line; can be given several times.",
    ),
    click.option(
        "--session", metavar="ID", type=Word(), help="Only this session; the start of its id is enough."
    ),
)


def selection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command since, until, causes, words and session."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
