"""Block logs of BlockCanary (markzhai/AndroidPerformanceMonitor), 1.0 to 1.5 and its forks.

A record is lines `key = value`, then CPU rows, then stacks with the time of each. Any part may be missing:
shared text has no head, forks left keys out, and a killed process stops in the middle. Unlike the original's
own reader, an empty value or a ` = ` in one ends nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Enum, auto
from functools import lru_cache
from typing import NamedTuple

from loopcanary.importers.java import (
    CACHED_LENGTH_MAX,
    CACHED_MAX,
    is_stamp,
    local_ns,
    place_of,
    read_place,
    wall_ns,
)
from loopcanary.protocols.imports import Blocked, CodePlace, CpuRow, Device, Line, SeenStack

_MS = 1_000_000
_KB = 1_024
_NEW_KEYS = {  # of 1.0 to 1.2: as of 1.3
    "qualifier": "qua",
    "apilevel": "api-level",
    "cpuCore": "cpu-core",
    "processName": "process",
    "timecost": "time",
    "threadtimecost": "thread-time",
    "timestart": "time-start",
    "timeend": "time-end",
    "cpubusy": "cpu-busy",
    "cpurate": "cpu-rate",
}
_KEYS = frozenset(
    {
        *_NEW_KEYS.values(),
        *("versionName", "versionCode", "imei", "uid", "network", "model", "freeMemory", "totalMemory"),
        "stack",
    }
)
_KEY = re.compile(r"\s*([A-Za-z-]{3,15}) ?= ?(.*)")
_HEAD = re.compile(r"\*{10,}")
_WRITTEN = re.compile(r"(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)\(write log time\)", re.ASCII)
_CPU = re.compile(
    r"(.{18}) cpu:(-?\d{1,9})% app:(-?\d{1,9})% \[user:-?\d+% system:-?\d+% ioWait:(-?\d{1,9})% \]", re.ASCII
)
_NUMBER = re.compile(r"\d{1,15}", re.ASCII)
_UNSAID = frozenset({"", "unknown", "null"})
_STACKS_MAX = 100
"""The original keeps so many."""
_FRAMES_MAX = 1_000


class _What(Enum):
    HEAD = auto()
    FIELD = auto()
    WRITTEN = auto()
    CPU = auto()
    STAMP = auto()


class _LogLine(NamedTuple):
    """A line that is not a frame."""

    what: _What
    text: str
    key: str = ""
    """The key of a field, as of 1.3, whose value is `text`."""


def _read_line(text: str) -> _LogLine | CodePlace | None:
    """Reads a line without spaces around it; None: it is not of this format."""
    first = text[:1]
    if first == "*" and _HEAD.fullmatch(text):
        return _LogLine(_What.HEAD, text)
    if "=" in text and (found := _KEY.fullmatch(text)):
        key = _NEW_KEYS.get(found[1], found[1])
        return _LogLine(_What.FIELD, found[2].strip(), key) if key in _KEYS else None
    if first.isdigit():
        if is_stamp(text):
            return _LogLine(_What.STAMP, text)
        if _WRITTEN.fullmatch(text):
            return _LogLine(_What.WRITTEN, text)
        if _CPU.fullmatch(text):
            return _LogLine(_What.CPU, text)
    return read_place(text)


_known_line = lru_cache(CACHED_MAX)(_read_line)
"""Thousands of logs of one app have the same frames."""


class _Record:
    """One block, as far as it was read."""

    def __init__(self) -> None:
        self.fields: dict[str, str] = {}
        self.numbers: list[int] = []
        self.written_ns: int | None = None
        self.cpu: list[str] = []
        self.stacks: list[tuple[str, list[CodePlace]]] = []
        self.key = ""
        self.is_apart = False
        """Whether a blank line ended the last stack."""

    def begins_anew(self, line: _LogLine) -> bool:
        return line.what is _What.HEAD or (line.what is _What.FIELD and line.key in self.fields)

    def takes(self, line: _LogLine) -> bool:
        if line.what is _What.FIELD:
            self._take_field(line.key, line.text)
        elif line.what is _What.STAMP:
            if self.key != "stack":
                return False
            self._begin_stack(line.text)
        elif line.what is _What.WRITTEN:
            found = _WRITTEN.fullmatch(line.text)
            self.written_ns = None if found is None else local_ns(*map(int, found.groups()))
        elif line.what is _What.CPU:
            if self.key != "cpu-rate":
                return False
            self.cpu.append(line.text)
        return True

    def _take_field(self, key: str, value: str) -> None:
        self.fields[key] = value
        self.key = key
        if key == "cpu-rate":
            self.cpu.append(value)
        elif key == "stack":
            place = place_of(value)
            if place is None:
                self._begin_stack(value if is_stamp(value) else "")
            else:
                self.takes_frame(place)

    def _begin_stack(self, at: str) -> None:
        self.stacks.append((at, []))
        self.is_apart = False

    def takes_frame(self, place: CodePlace) -> bool:
        if self.key != "stack":
            return False
        if not self.stacks or (self.is_apart and self.stacks[-1][1]):
            self._begin_stack("")
        self.is_apart = False
        frames = self.stacks[-1][1]
        if len(frames) < _FRAMES_MAX and len(self.stacks) <= _STACKS_MAX:
            frames.append(place)
        return True


class BlockCanaryImporter:
    words = "block logs of BlockCanary: files, zips of them, lines of a logcat"

    def find(self, lines: Sequence[Line], *, near_wall_ns: int) -> Iterator[Blocked]:
        record = _Record()
        for number, raw in lines:
            text = raw.strip()
            if not text:
                record.is_apart = True
                continue
            line = _known_line(text) if len(text) <= CACHED_LENGTH_MAX else _read_line(text)
            if isinstance(line, CodePlace):  # most are
                if record.takes_frame(line):
                    record.numbers.append(number)
            elif line is not None:
                if record.begins_anew(line):
                    yield from _blocked(record, near_wall_ns)
                    record = _Record()
                if record.takes(line):
                    record.numbers.append(number)
        yield from _blocked(record, near_wall_ns)


def _blocked(record: _Record, near_wall_ns: int) -> Iterator[Blocked]:
    fields = record.fields
    near_ns = near_wall_ns if record.written_ns is None else record.written_ns
    began_ns = wall_ns(fields.get("time-start", ""), near_ns)
    ended_ns = wall_ns(fields.get("time-end", ""), near_ns)
    lasted = _number(fields.get("time"))
    if lasted is None and began_ns is not None and ended_ns is not None and ended_ns >= began_ns:
        lasted = (ended_ns - began_ns) // _MS
    stacks = [stack for stack in record.stacks if stack[1]][:_STACKS_MAX]
    if lasted is None or not (stacks or fields.keys() & {"time-start", "thread-time", "cpu-rate"}):
        return
    ran = _number(fields.get("thread-time"))
    free = _number(fields.get("freeMemory"))
    yield Blocked(
        tool="BlockCanary",
        lines=tuple(record.numbers),
        device=_device(fields),
        began_wall_ns=began_ns if began_ns is not None else record.written_ns,
        duration_ns=lasted * _MS,
        ran_ns=None if ran is None else ran * _MS,
        stacks=tuple(
            SeenStack(at_wall_ns=wall_ns(at, near_ns), frames=tuple(frames)) for at, frames in stacks
        ),
        cpu=tuple(row for text in record.cpu for row in _cpu(text, near_ns)),
        memory_free_bytes=None if free is None else free * _KB,
    )


def _cpu(text: str, near_ns: int) -> Iterator[CpuRow]:
    found = _CPU.fullmatch(text)
    at_ns = None if found is None else wall_ns(found[1], near_ns)
    if found is not None and at_ns is not None:
        yield CpuRow(at_wall_ns=at_ns, busy=int(found[2]), app=int(found[3]), io_wait=int(found[4]))


def _device(fields: dict[str, str]) -> Device:
    def said(key: str) -> str:
        value = fields.get(key, "")
        return "" if value in _UNSAID else value

    code = said("versionCode")
    level, _, release = said("api-level").partition(" ")
    android = " ".join(filter(None, ("Android", release))) + (f" (API {level})" if level else "")
    return Device(
        process=said("process"),
        version=" ".join(filter(None, (said("versionName"), f"({code})" if code else ""))),
        qualifier=said("qua"),
        model=said("model"),
        android=android if level else "",
        cores=_number(said("cpu-core")) or 0,
        memory_bytes=(_number(said("totalMemory")) or 0) * _KB,
        network=said("network"),
    )


def _number(text: str | None) -> int | None:
    """None: not a number, or one that no device writes."""
    return int(text) if text is not None and _NUMBER.fullmatch(text) else None


BLOCKCANARY = BlockCanaryImporter()
