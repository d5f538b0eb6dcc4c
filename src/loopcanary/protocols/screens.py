"""Where text is shown to the person who reads a program's stderr."""

from __future__ import annotations

from typing import Protocol

from loopcanary.late_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What the other end can show."""

    colour: bool = False
    links: bool = False
    width: int = 80
    folder: str = ""
    """Paths below it are shown relative to it."""


class TextScreen(Protocol):
    """Shows blocks of text to the person who reads a program's stderr. Never blocks, never raises."""

    dropped: int
    """Blocks that could not be shown."""

    def write(self, block: str) -> bool:
        """Shows the block; False if it was dropped."""

    def is_terminal(self) -> bool:
        """Whether the other end is one; it need not have colours."""

    def look(self) -> Look:
        """What it can show."""
