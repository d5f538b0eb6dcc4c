"""Types of arguments and options. None may be empty: a shell variable may not have been set."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from loopcanary.cli.options import folder_problem, text_problem
from loopcanary.model.units import parse_duration_ns, parse_size_bytes


class Parsed(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.4
    """A text that a function reads; its ValueError says what is wrong."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name, self._parse = name, parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):  # a default
            return value
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _word(text: str) -> str:
    if problem := text_problem(text):
        raise ValueError(problem)
    return text


def _folder(text: str) -> Path:
    if problem := folder_problem(text):
        raise ValueError(problem)
    return Path(text)


def _moment(text: str) -> int:
    try:
        return time.time_ns() - parse_duration_ns(text)
    except ValueError:
        pass
    try:
        return round(datetime.fromisoformat(text).astimezone().timestamp()) * 1_000_000_000
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"{text!r} is not a time: write 2h (ago), 2026-11-21 or 2026-11-21T05:00") from None


WORD = Parsed("text", _word)
FOLDER = Parsed("folder", _folder)
"""The path of a folder, which need not exist."""
MOMENT = Parsed("time", _moment)
"""Nanoseconds since 1970: `90m` (ago), `2026-11-21`, `2026-11-21 05:00`, RFC 3339; local unless it has an
offset."""
DURATION = Parsed("duration", parse_duration_ns)
"""Nanoseconds: `30d`, `12h`."""
SIZE = Parsed("size", parse_size_bytes)
"""Bytes: `8MB`, `1GiB`."""


def number(kind: type[int | float], least: float, most: float | None = None) -> Parsed:
    """A number within bounds, which the message names and the help does not."""

    def parse(text: str) -> float:
        try:
            found = kind(text)
        except ValueError:
            raise ValueError(f"{text!r} is not a {'whole ' if kind is int else ''}number") from None
        if not least <= found <= (found if most is None else most):
            up_to = "" if most is None else f" and at most {most:,}"
            raise ValueError(f"{text} is out of range: write at least {least}{up_to}")
        return found

    return Parsed("number", parse)


def duration_of(text: str, option: str) -> int:
    """Nanoseconds. BadParameter, which names the option."""
    try:
        return parse_duration_ns(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=option) from error
