"""The settings that commands which watch a program take as options."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click

from loopcanary.cli.options import SETTINGS, Option, folder_problem
from loopcanary.cli.param_types import FOLDER, WORD
from loopcanary.model import Config


def settings_options(command: Callable[..., Any], *, more: Iterable[Option] = ()) -> Callable[..., Any]:
    """Decorator: adds the options and `more`, in the order of the help."""
    for option in reversed((*SETTINGS, *more)):
        command = _as_click(option)(command)
    return command


def _as_click(option: Option) -> Callable[[Any], Any]:
    if option.is_flag:
        return click.option(option.name, is_flag=True, default=None, help=option.help, hidden=option.hidden)
    kind: click.ParamType[Any] = FOLDER if option.problem is folder_problem else WORD
    return click.option(
        option.name,
        metavar=option.metavar,
        type=click.Choice(option.choices) if option.choices else kind,
        multiple=option.repeats,
        help=option.help,
        hidden=option.hidden,
    )


def loaded(settings: dict[str, Any]) -> Config:
    """The settings in force with these options. ConfigError names the option."""
    from loopcanary.config import ConfigError, load

    try:
        return load(**settings)
    except ConfigError as error:
        if error.place != f"keyword {error.key}":
            raise
        option = error.key.replace("_", "-")
        raise ConfigError(
            key=error.key,
            value=error.value,
            place=f"option --{option}",
            problem=error.problem,
            next_step=error.next_step,
        ) from None
