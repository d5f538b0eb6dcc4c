"""stdout for text: rich, without its own ideas of what a text means."""

from __future__ import annotations

from typing import IO, NoReturn

from rich.console import Console

FILE_WIDTH = 110


class Screen(Console):
    """A console that takes square brackets, colons and numbers for what they are."""

    def __init__(self, file: IO[str] | None = None) -> None:
        """A file replaces stdout, and is as wide as its readers expect."""
        width = None if file is None else FILE_WIDTH
        super().__init__(markup=False, emoji=False, highlight=False, file=file, width=width)

    def on_broken_pipe(self) -> NoReturn:
        """Raises for `main`; rich would end the process with status 1."""
        raise BrokenPipeError
