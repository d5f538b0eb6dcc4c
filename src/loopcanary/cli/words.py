"""Words of a command line that cannot be empty: an empty one is a shell variable that was not set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


class Word(click.ParamType[str]):
    """Text with something in it."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text as it is."""
        if not str(value).strip():
            self.fail("it is empty", param, ctx)
        return str(value)


class Folder(click.ParamType[Path]):
    """Path of a folder, which need not be there."""

    name = "folder"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path. An empty one would be the current folder."""
        text = Word().convert(value, param, ctx)
        if Path(text).is_file():
            self.fail(f"{text} is a file", param, ctx)
        return Path(text)
