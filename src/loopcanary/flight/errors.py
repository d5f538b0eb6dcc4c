"""The one error of this part."""

from __future__ import annotations

import os


def printable(text: str) -> str:
    """The text with everything that a terminal would act on written as an escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


class FlightError(Exception):
    """A flight file that cannot be read: one line with the place, what is wrong, and the next step.

    `path` is the file, or the name given for a buffer; `what` the rest of the line.
    """

    def __init__(self, path: str | os.PathLike[str], what: str) -> None:
        super().__init__(path, what)
        self.path = os.fspath(path)
        self.what = what

    def __str__(self) -> str:
        return f"{printable(self.path)}: {printable(self.what)}"
