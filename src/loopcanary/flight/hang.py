"""Reads what a portable engine left of its hangs, as if it were a flight file."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Set as AbstractSet
from typing import Any, Self

from loopcanary.flight.header import FlightHeader, bounded
from loopcanary.flight.reader import FlightFile
from loopcanary.flight.source import FlightError, open_source
from loopcanary.model import Clock, LaneTotals, StallEvidence
from loopcanary.model.hang_halves import HALF_BYTES, TEXT_BYTES, newest
from loopcanary.wire import from_wire

_NUMBERS = ("pid", "parent_pid", "process_start", "pid_namespace", "started_ns")


class HangFile(FlightFile):
    """The newest whole half of the file, as it was when it was opened."""

    is_mapped = False

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Reads the file at `path`. FlightError as FlightFile has it, and where no half of it is whole."""
        file = cls.__new__(cls)
        file._source = source = open_source(path)  # noqa: SLF001 - another constructor
        try:
            file._read(source.read(0, min(source.size, 2 * HALF_BYTES)))  # noqa: SLF001
        except BaseException:
            source.close()
            raise
        return file

    def _read(self, data: bytes) -> None:
        payload = newest(data)
        if payload is None:
            raise FlightError(
                self.name, "holds no whole record; its process was killed as it wrote it, or it is damaged"
            )
        try:
            told = json.loads(zlib.decompressobj().decompress(payload, TEXT_BYTES))
            self._writer = _fields(told["writer"])
            self._hangs = [from_wire(StallEvidence, one) for one in told["hangs"]]
            self._facts = dict(told["facts"])
        except (zlib.error, ValueError, LookupError, TypeError, ArithmeticError, RecursionError) as error:
            raise FlightError(self.name, f"is damaged, or of another loopcanary: {error}") from error

    @property
    def header(self) -> FlightHeader:
        """What is known of its process."""
        last_ns = max((one.last_look_ns for one in self._hangs), default=0)
        return FlightHeader(**self._writer, file_bytes=self._source.size, heartbeat_ns=bounded(last_ns))

    def facts(self) -> dict[str, Any]:
        """The session, as its process described it."""
        return self._facts

    def counters(self) -> dict[str, int]:
        """None are left."""
        return {}

    def lanes(self) -> list[LaneTotals]:
        """None are left."""
        return []

    def stalls(self, without: AbstractSet[int] = frozenset(), **_: bool) -> list[tuple[int, StallEvidence]]:
        """The hangs; of one that has ended, its process had not stored it yet."""
        return [(number, one) for number, one in enumerate(self._hangs) if one.serial not in without]

    def look(self, **_: int) -> None:
        """None is left."""

    def unslotted_stalls(self) -> list[StallEvidence]:
        """Every hang has its samples."""
        return []


def _fields(writer: dict[str, Any]) -> dict[str, Any]:
    """The fields of the header that the process has written."""
    numbers = {name: bounded(int(writer[name])) for name in _NUMBERS}
    clock = Clock(monotonic_ns=bounded(int(writer["paired_ns"])), wall_ns=bounded(int(writer["wall_ns"])))
    return {**numbers, "boot_id": str(writer["boot_id"]), "clock": clock}
