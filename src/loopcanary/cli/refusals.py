"""How a command refuses, and with which exit status it ends."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from loopcanary.model.outside import Unseen

NOTHING_FOUND = 1
BAD_USE = 2
FAILED_CHECK = 70
"""EX_SOFTWARE of sysexits.h: a check of `ci`, `diff`, `report` or `run --fail-on-stall` failed."""


class NotFoundError(click.ClickException):
    """A thing that the user named is not there."""


def refuse(message: str) -> int:
    """Prints the message as one line on stderr; returns the status of bad use."""
    click.echo(f"loopcanary: {' '.join(message.split())}", err=True)
    return BAD_USE


def complain(line: str) -> None:
    """Prints a line as `refuse` does, unless stderr takes none (a log on a full disk)."""
    with suppress(OSError):
        refuse(line)


def refuse_unseen(unseen: Unseen, *, words: str = "") -> int:
    """Says why a process cannot be seen (or these words); returns the exit status."""
    refuse(words or unseen.why)
    return BAD_USE if unseen.is_refused else NOTHING_FOUND


def reader_left() -> int:
    """For `loopcanary report | head`: not an error, and nothing more to flush at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
