"""Columns of JSON that are written one after the other, though their values come side by side.

What is much goes to a temporary file: one for all columns of an export, as there may be thousands of them.
"""

from __future__ import annotations

from tempfile import TemporaryFile
from typing import IO, Any

from loopcanary.exporters.texts import encoded

_BLOCK_BYTES = 1 << 10
"""The memory of a column, but for one value."""


class Spool:
    """The temporary file, made when it is needed."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._length = 0

    def put(self, block: bytes) -> tuple[int, int]:
        if self._file is None:
            self._file = TemporaryFile()  # noqa: SIM115 - closed with the spool
        self._file.seek(self._length)
        self._file.write(block)
        place = self._length, len(block)
        self._length += len(block)
        return place

    def get(self, place: tuple[int, int]) -> bytes:
        assert self._file is not None
        self._file.seek(place[0])
        return self._file.read(place[1])

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class CsvColumn:
    """A JSON array that grows."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._places: list[tuple[int, int]] = []
        self._rest = bytearray()
        self.length = 0

    def add(self, value: Any) -> None:
        if self.length:
            self._rest += b","
        self._rest += encoded(value).encode("ascii")
        self.length += 1
        if len(self._rest) > _BLOCK_BYTES:
            self._places.append(self._spool.put(bytes(self._rest)))
            self._rest.clear()

    def copy_to(self, out: IO[bytes]) -> None:
        out.write(b"[")
        for place in self._places:
            out.write(self._spool.get(place))
        out.write(self._rest + b"]")


class Columns:
    """Columns of one length, written as an object."""

    def __init__(self, spool: Spool, *names: str) -> None:
        self._columns = {name: CsvColumn(spool) for name in names}

    @property
    def length(self) -> int:
        return next(iter(self._columns.values())).length

    def add(self, *values: Any) -> None:
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
