"""Columns of JSON that are written one after the other, though their values come side by side."""

from __future__ import annotations

from tempfile import SpooledTemporaryFile
from typing import IO, Any

from loopcanary.exporters.texts import encoded

_IN_MEMORY_BYTES = 1 << 16
_BLOCK_BYTES = 1 << 16


class Column:
    """A JSON array that grows; what is much goes to a temporary file."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES)  # noqa: SIM115 - closed with the column
        self.length = 0

    def add(self, value: Any) -> None:
        """One more value."""
        self._file.write((b"," if self.length else b"") + encoded(value).encode("ascii"))
        self.length += 1

    def copy_to(self, out: IO[bytes]) -> None:
        """Writes the array."""
        out.write(b"[")
        self._file.seek(0)
        while block := self._file.read(_BLOCK_BYTES):
            out.write(block)
        out.write(b"]")

    def close(self) -> None:
        """Lets go of the file."""
        self._file.close()


class Columns:
    """Columns of one length, written as an object."""

    def __init__(self, *names: str) -> None:
        self._columns = {name: Column() for name in names}

    @property
    def length(self) -> int:
        """How many rows there are."""
        return next(iter(self._columns.values())).length

    def add(self, *values: Any) -> None:
        """One more row, a value for each column."""
        for column, value in zip(self._columns.values(), values, strict=True):
            column.add(value)

    def copy_to(self, out: IO[bytes], **more: Any) -> None:
        """Writes `{"name": [...], ..., "length": n}`, with `more` before."""
        out.write(b"{")
        for name, value in more.items():
            out.write(f"{encoded(name)}:{encoded(value)},".encode("ascii"))
        for name, column in self._columns.items():
            out.write(f"{encoded(name)}:".encode("ascii"))
            column.copy_to(out)
            out.write(b",")
        out.write(f'"length":{self.length}}}'.encode("ascii"))

    def close(self) -> None:
        """Lets go of their files."""
        for column in self._columns.values():
            column.close()
