"""Files that commands write."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

STDOUT = "-"


@contextmanager
def opened_output(path: str) -> Iterator[IO[bytes]]:
    """Standard output, or a file that is there once all is in it, and that others cannot read. What is there
    and no file (a device, a pipe) is written to."""
    if path == STDOUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = Path(path)
    if target.exists() and not target.is_file():
        # A device or a pipe: a file that takes its place would be the end of it.
        try:
            with target.open("wb") as out:
                yield out
        except OSError as error:
            raise click.ClickException(f"{path} cannot be written: {error.strerror or error}") from error
        return
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
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
