"""Arguments and options: text and folders, which cannot be empty (a shell variable that was not set)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from loopcanary.cli.options import folder_problem, text_problem


class Word(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.4
    """Text with something in it."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if problem := text_problem(text):
            self.fail(problem, param, ctx)
        return text


class Number(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.4
    """A number within bounds, which are said where they are not kept and not in the help."""

    name = "number"

    def __init__(self, kind: type[int | float], least: float, most: float | None = None) -> None:
        self._kind, self._least, self._most = kind, least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number."""
        try:
            found = self._kind(value)
        except ValueError:
            self.fail(f"{value!r} is no {'whole ' if self._kind is int else ''}number", param, ctx)
        if not self._least <= found <= (found if self._most is None else self._most):
            most = "" if self._most is None else f" and {self._most:,} at most"
            self.fail(f"{value} is out of bounds: {self._least} at least{most}", param, ctx)
        return found


class Renamed(click.Option):
    """An option with older names, which go on working and are not in the help."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The first name, and what the option does."""
        record = super().get_help_record(ctx)
        return record and (record[0].replace(", ".join(self.opts), self.opts[0]), record[1])


class Folder(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.4
    """Path of a folder, which need not be there."""

    name = "folder"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path."""
        text = str(value)
        if problem := folder_problem(text):
            self.fail(problem, param, ctx)
        return Path(text)
