"""How a command says that it cannot do what was asked for, and with which status it ends."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

import click

NOTHING_FOUND = 1
BAD_USE = 2


class NotFoundError(click.ClickException):
    """What was asked for by its name is not there."""


def refuse(message: str) -> int:
    """Says in one line on stderr what is wrong; the status of bad use."""
    click.echo(f"loopcanary: {' '.join(message.split())}", err=True)
    return BAD_USE


def complain(line: str) -> None:
    """The same of a command that goes on; where it cannot be said (a log on a full disk), it is not."""
    with suppress(OSError):
        refuse(line)


def reader_left() -> int:
    """`loopcanary report | head`: not an error, and nothing more to flush at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
