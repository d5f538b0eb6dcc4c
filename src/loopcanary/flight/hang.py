"""Reads what a portable engine left of its hangs, as if it were a flight file."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Set as AbstractSet
from typing import Any, Self

from loopcanary.flight.format import ClockKind, ProcessState, TakenBy
from loopcanary.flight.header import FlightHeader, bounded
from loopcanary.flight.reader import FlightFile
from loopcanary.flight.source import FlightError, open_source
from loopcanary.model import Clock, LaneTotals, StallEvidence
from loopcanary.model.hang_halves import HALF_BYTES, HangWriter, newest, unpacked
from loopcanary.wire import WireError, from_wire


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
            told = json.loads(unpacked(payload))
            self._writer = from_wire(HangWriter, told["writer"])
            self._hangs = [from_wire(StallEvidence, one) for one in told["hangs"]]
            self._facts = dict(told["facts"])
        except (zlib.error, WireError, ValueError, LookupError, TypeError, RecursionError) as error:
            raise FlightError(self.name, f"is damaged, or of another loopcanary: {error}") from error

    @property
    def header(self) -> FlightHeader:
        """What is known of its process."""
        writer = self._writer
        return FlightHeader(
            version=0,
            file_bytes=self._source.size,
            pid=bounded(writer.pid),
            parent_pid=bounded(writer.parent_pid),
            process_start=bounded(writer.process_start),
            pid_namespace=bounded(writer.pid_namespace),
            boot_id=writer.boot_id,
            state=ProcessState.RUNNING,
            started_ns=bounded(writer.started_ns),
            ended_ns=None,
            clock=Clock(monotonic_ns=bounded(writer.paired_ns), wall_ns=bounded(writer.paired_wall_ns)),
            clock_kind=ClockKind.MONOTONIC,
            heartbeat_ns=bounded(max((one.last_look_ns for one in self._hangs), default=0)),
            parked=False,
            gc_total_ns=0,
            gc_running_since_ns=None,
            gc_running_tid=0,
            gc_running_generation=0,
            taken_by=TakenBy.DRAIN,
        )

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

    def unslotted_stalls(self) -> list[StallEvidence]:
        """Every hang has its samples."""
        return []
