"""Where a command writes what it makes: standard output, or a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import click

from loopcanary.cli.words import Word

STDOUT = "-"

output_option: Callable[[Any], Any] = click.option(
    "--output",
    "-o",
    type=Word(),
    metavar="FILE",
    default=STDOUT,
    help="Write to this file. Default: standard output.",
)


@contextmanager
def opened_output(path: str) -> Iterator[IO[bytes]]:
    """Standard output, or a file that is there once all is in it, and that others cannot read. What is there
    and no file (a device, a pipe) is written to. click.ClickException where it cannot be written."""
    if path == STDOUT:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = Path(path)
    try:
        if target.exists() and not target.is_file():
            # A device or a pipe is written to: the rename below would replace it.
            with target.open("wb") as out:
                yield out
            return
        part = target.with_name(f".{target.name}.{os.getpid()}.part")
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as out:
                yield out
            part.replace(target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror or error}") from error
