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
    from loopcanary.tracers.frames import SceneSlice
    from loopcanary.tracers.idle import RawIdleLag
    from loopcanary.tracers.input import RawInputLag
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
        self._write(_record_of(raw), asks=is_issue)

    def reported(self, told: Told) -> None:
        """Notes what a third party's tracer reported. TypeError, ValueError: it is not an issue, or too
        large."""
        from loopcanary.tracers.bounded import wire_of

        where = {"tracer": told.tracer, "thread": told.thread[:_TEXT_MAX], "scene": _short(told.scene)}
        issue = {"issue": wire_of(told.issue), "values": [told.told_ns]}
        self._write({"what": "reported", **where, **issue}, asks=True)
        self.issues += 1

    def sums(self, events: Iterable[InputFigures], idle_work: Iterable[IdleFigures]) -> None:
        """Notes the sums of input and idle work up to now. Those of frames are in their slices."""
        for figures in events:
            self._write({"what": "input sum", "values": _input_values(figures)}, asks=False)
        for work in idle_work:
            self._write({"what": "idle sum", "values": _idle_values(work)}, asks=False)

    def give_up(self) -> int:
        """Removes the file, as another reader takes over. Returns the last serial."""
        with suppress(OSError):
            os.unlink(self._path)  # noqa: PTH108 - pathlib is not loaded for it
        return self._last

    def _write(self, record: dict[str, Any], *, asks: bool) -> None:
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
    """The record as JSON, with as many of the last events before it as a cell has room for."""
    while True:
        text = json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")
        if len(text) <= TEXT_BYTES or not record.get("before"):
            return text
        record = {**record, "before": record["before"][1:]}


def _record_of(raw: Raw) -> dict[str, Any]:
    record_of = _RECORDS[type(raw).__name__]  # the types are not loaded for it
    where = {"thread": raw.thread[:_TEXT_MAX], "loop": raw.loop[:_TEXT_MAX], "scene": _short(raw.scene)}
    return {**where, **record_of(raw)}


def _slice_record(over: SceneSlice) -> dict[str, Any]:
    figures = over.slice.figures
    return {
        "what": "slice",
        "values": [
            over.slice.began_ns,
            over.slice.ended_ns,
            figures.refresh_mhz,
            figures.frames,
            figures.frame_ns,
            figures.late_ns,
            figures.janky_ns,
            figures.frozen,
            figures.worst_ns,
            *figures.drop_level,
            *figures.drop_sum,
        ],
        "worst": [[frame.start_ns, frame.shown_ns, frame.dropped] for frame in over.worst],
    }


def _input_record(lag: RawInputLag) -> dict[str, Any]:
    return {
        "what": "input",
        "name": lag.name[:_TEXT_MAX],
        "values": [lag.arrived_ns, lag.begin_ns, lag.end_ns],
        "before": [[one.name[:_TEXT_MAX], one.begin_ns, one.end_ns] for one in lag.before],
    }


def _idle_record(lag: RawIdleLag) -> dict[str, Any]:
    return {
        "what": "idle",
        "name": lag.name[:_TEXT_MAX],
        "values": [lag.begin_ns, lag.end_ns, lag.runs],
    }


_RECORDS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "SceneSlice": _slice_record,
    "RawInputLag": _input_record,
    "RawIdleLag": _idle_record,
}


def _input_values(one: InputFigures) -> list[Any]:
    names = [one.thread[:_TEXT_MAX], one.loop[:_TEXT_MAX], _short(one.worst)]
    numbers = [one.events, one.p50_ns, one.p98_ns, one.worst_ns, one.queued_ns, one.lag_ns, one.one_of]
    return [*names, *numbers]


def _idle_values(one: IdleFigures) -> list[Any]:
    names = [one.thread[:_TEXT_MAX], one.loop[:_TEXT_MAX], one.name[:_TEXT_MAX]]
    return [*names, one.runs, one.total_ns, one.longest_ns, one.spun_ns]


def _short(text: str | None) -> str | None:
    return None if text is None else text[:_TEXT_MAX]
