"""stdout for text: rich, without its own ideas of what a text means."""

from __future__ import annotations

from typing import NoReturn

from rich.console import Console


class Screen(Console):
    """A console that takes square brackets, colons and numbers for what they are."""

    def __init__(self) -> None:
        super().__init__(markup=False, emoji=False, highlight=False)

    def on_broken_pipe(self) -> NoReturn:
        """Leaves a reader that is gone to `main`; rich would end the process with status 1."""
        raise BrokenPipeError
