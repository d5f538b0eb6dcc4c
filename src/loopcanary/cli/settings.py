"""The settings that commands which watch a program take as options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from loopcanary.cli.words import Folder, Word
from loopcanary.model.config import EngineChoice

if TYPE_CHECKING:
    from collections.abc import Callable

    from loopcanary.model import Config

_OPTIONS = (
    click.option(
        "--threshold", metavar="DURATION", type=Word(), help="A longer callback is a stall. Default: 100ms."
    ),
    click.option(
        "--store",
        type=Folder(),
        metavar="DIR",
        help="Where stalls are stored. Default: .loopcanary in the program's current folder.",
    ),
    click.option("--name", metavar="TEXT", type=Word(), help="Name of the program in reports."),
    click.option(
        "--concern",
        multiple=True,
        metavar="PACKAGE",
        type=Word(),
        help="Package of your own code; may be repeated.",
    ),
    click.option(
        "--only-concern", is_flag=True, default=None, help="Report only stalls with your own code in them."
    ),
    click.option(
        "--ignore",
        multiple=True,
        metavar="WHAT",
        type=Word(),
        help="Do not report this package, file glob or package:function; may be repeated.",
    ),
    click.option(
        "--engine",
        type=click.Choice([choice.value for choice in EngineChoice]),
        help="How to watch. Default: auto (native where it works).",
    ),
    click.option("--no-children", is_flag=True, default=None, help="Do not watch child processes."),
    click.option(
        "--while-debugging", is_flag=True, default=None, help="Also record stalls under a debugger."
    ),
    click.option(
        "--notify",
        multiple=True,
        metavar="WAY",
        type=Word(),
        help="Notify about hangs by bell, desktop or webhook; may be repeated.",
    ),
    click.option(
        "--log-file", metavar="FILE", type=Word(), help="Append each stall to this file, as a line of JSON."
    ),
    click.option("--quiet", is_flag=True, default=None, help="Print nothing while the program runs."),
)


def settings_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: adds the options, in the order of the help."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def given(settings: dict[str, Any]) -> dict[str, Any]:
    """Those that were given, by the names that `load` knows them by."""
    found = {key: value for key, value in settings.items() if value not in (None, ())}
    # As the environment has them: `--notify bell,desktop` is `--notify bell --notify desktop`.
    found |= {key: ",".join(value) for key, value in found.items() if isinstance(value, tuple)}
    if found.pop("no_children", False):
        found["follow_children"] = False
    return found


def loaded(settings: dict[str, Any]) -> Config:
    """The settings in force with these, which were given as options. ConfigError, which names the option."""
    from loopcanary.config import ConfigError, load

    try:
        return load(**settings)
    except ConfigError as error:
        if error.place != f"keyword {error.key}":
            raise
        option = error.key.removeprefix("notify_").replace("_", "-")
        raise ConfigError(
            key=error.key,
            value=error.value,
            place=f"option --{option}",
            problem=error.problem,
            next_step=error.next_step,
        ) from None
