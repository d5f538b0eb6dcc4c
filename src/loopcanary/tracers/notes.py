"""Notes for a keeper of what tracers saw, each in a cell of a file beside the flight file
(model/trace_cells.py).

A note is a write to a file in memory. The file is neither mapped nor kept open, since programs close
descriptors that they have not opened. noted.py reads the file.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any

from loopcanary.model.trace_cells import CELLS, PART, PARTS_MAX, TEXT_BYTES, TRACES, cell_of, place_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from loopcanary.model.figures import IdleFigures, InputFigures
    from loopcanary.tracers.desk import Told
    from loopcanary.tracers.judging import Raw

_FLAGS = os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_ASK_EVERY = CELLS // 2
_TEXT_MAX = 200
"""Longest name of a thread, a scene or an event, in characters: that of a title."""


class Notes:
    """The notes of one engine. Any thread with the GIL. Methods raise OSError if the file cannot be
    written."""

    def __init__(self, flight: str, ask: Callable[[], object]) -> None:
        """`ask` calls the keeper, and does not wait for it. OSError: the file cannot be made."""
        self._path = flight + TRACES
        self._ask = ask
        self._serials = count(1)
        self._pid = os.getpid()
        self._last = 0
        self.issues = 0
        """How many of the notes become issues."""
        # Never another user's file.
        os.close(os.open(self._path, _FLAGS | os.O_CREAT | os.O_EXCL, 0o600))

    def note(self, raw: Raw, *, is_issue: bool) -> None:
        """Notes a slice or a lag."""
        self.issues += is_issue
        self._write(raw, asks=is_issue)

    def reported(self, told: Told) -> None:
        """Notes what a third party's tracer reported. TypeError, ValueError: it is not an issue, or too
        large."""
        from loopcanary.tracers.bounded import wire_of

        issue, where = wire_of(told.issue), (told.thread, told.scene, told.told_ns, told.tracer)
        self._write_record({"what": "Told", "issue": issue, "values": _values(where)}, asks=True)
        self.issues += 1

    def sums(self, events: Iterable[InputFigures], idle_work: Iterable[IdleFigures]) -> None:
        """Notes the sums of input and idle work up to now. Those of frames are in their slices."""
        for figures in (*events, *idle_work):
            self._write(figures, asks=False)

    def give_up(self) -> int:
        """Removes the file, as another reader takes over. Returns the last serial."""
        with suppress(OSError):
            os.unlink(self._path)  # noqa: PTH108 - pathlib is not loaded for it
        return self._last

    def _write(self, noted: Any, *, asks: bool) -> None:
        self._write_record({"what": type(noted).__name__, "values": _values(noted)}, asks=asks)

    def _write_record(self, record: dict[str, Any], *, asks: bool) -> None:
        if os.getpid() != self._pid:
            return  # forked by code of C: it is the parent's
        text = _fitting(record)
        begins = range(0, len(text), TEXT_BYTES - 1) if len(text) > TEXT_BYTES else ()
        if len(begins) > PARTS_MAX:
            raise ValueError(f"{len(text):,} bytes are more than there is room for")
        parts = [self._put(PART + text[begin : begin + TEXT_BYTES - 1]) for begin in begins]
        serial = self._put(json.dumps({"parts": parts}).encode() if parts else text)
        if asks or serial % _ASK_EVERY == 0:
            self._ask()

    def _put(self, text: bytes) -> int:
        """Writes a cell. Returns its serial."""
        serial = self._last = next(self._serials)
        descriptor = os.open(self._path, _FLAGS)
        try:
            os.pwrite(descriptor, cell_of(serial, text), place_of(serial))
        finally:
            os.close(descriptor)
        return serial


def _fitting(record: dict[str, Any]) -> bytes:
    """The record as JSON; of a late event, with as many of the events before it as a cell has room for."""
    while True:
        text = json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")
        if len(text) <= TEXT_BYTES or record["what"] != "RawInputLag" or not record["values"][-1]:
            return text
        del record["values"][-1][0]


def _values(one: Any) -> Any:
    """Tuples and dataclasses as lists of what is in them, in order; with short texts."""
    if isinstance(one, str):
        return one[:_TEXT_MAX]
    if isinstance(one, tuple):
        return [_values(part) for part in one]
    names = getattr(one, "__dataclass_fields__", None)
    return one if names is None else [_values(getattr(one, name)) for name in names]
