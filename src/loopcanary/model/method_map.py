"""The functions whose calls are traced, by number: the map that is written beside a flight file, and where it
and the files of calls lie."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from loopcanary.late_dataclass import dataclass
from loopcanary.model.trace_cells import TRACES

MAGIC: Final = b"LCMETHOD\x01\0\0\0"
"""What the file begins with: 8 bytes of name, and the version."""
CALLS: Final = ".calls-"
"""Behind the flight file's path, with a number behind it: the calls of one thread."""
METHODS: Final = ".methods"
"""The same, of the map."""
START: Final = ".start"
"""The same, of what was noted of the process's start."""
PATCHES: Final = ".patches"
"""The same, of what is replaced in the program."""
ERRAND, ERRAND_ENDS, ANSWER = ".errand", ".errand-ends", ".answer"
"""The same, of what a command wants of the process, of the ids of what is wanted no more, and of what came of
it."""
CALLS_FILES: Final = 16
"""The numbers are below this one."""
NUMBER_MAX: Final = (1 << 19) - 1
"""Of functions; those above are of work: docs/internals/calls-format.md."""
_RECORD: Final = struct.Struct("<IIHHB")
_TEXT_BYTES: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A function of the program; or work, which has a number above `NUMBER_MAX`."""

    number: int
    """From 1, in the order in which they were first called; 0: its calls are not traced."""
    qualname: str
    file: str
    """Of work: the task's name."""
    line: int
    """Where it begins."""
    is_trivial: bool = False
    """It is too small to be traced."""


def remove_beside(flight: str) -> None:
    """Removes the files beside the flight file with this path, if they exist."""
    for suffix in (TRACES, START, PATCHES, ERRAND, ERRAND_ENDS, ANSWER):
        with suppress(OSError):
            os.unlink(flight + suffix)  # noqa: PTH108 - pathlib is not loaded for it
    remove_calls(flight)


def remove_calls(flight: str) -> None:
    """Removes only the files of traced calls beside the flight file, if they exist."""
    if os.path.lexists(flight + METHODS):  # most programs trace no calls
        for number in range(CALLS_FILES):
            with suppress(OSError):
                os.unlink(f"{flight}{CALLS}{number}")  # noqa: PTH108
        with suppress(OSError):
            os.unlink(flight + METHODS)  # noqa: PTH108


def record_of(method: Method) -> bytes:
    """The method as it is in the file."""
    file, qualname = _encoded(method.file), _encoded(method.qualname)
    line = min(max(method.line, 0), (1 << 32) - 1)
    head = _RECORD.pack(method.number, line, len(file), len(qualname), method.is_trivial)
    return head + file + qualname


def records_in(content: bytes) -> Iterator[Method]:
    """The methods in the bytes of a map file. An incomplete record ends the map; other bytes give no
    methods."""
    at = len(MAGIC) if content.startswith(MAGIC) else len(content)
    while at + _RECORD.size <= len(content):
        number, line, file_bytes, name_bytes, is_trivial = _RECORD.unpack_from(content, at)
        at += _RECORD.size
        name_at, end = at + file_bytes, at + file_bytes + name_bytes
        if end > len(content):
            return
        yield Method(
            number=number,
            qualname=content[name_at:end].decode("utf-8", "replace"),
            file=content[at:name_at].decode("utf-8", "replace"),
            line=line,
            is_trivial=bool(is_trivial),
        )
        at = end


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")[:_TEXT_BYTES]
