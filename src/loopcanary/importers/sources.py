"""The lines of files, folders, zips and standard input, within limits; and those of a logcat by who wrote
them.

No link is followed, nothing is unpacked to the disk, and a zip in a zip stays closed.
"""

from __future__ import annotations

import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import field
from pathlib import Path
from typing import IO

from loopcanary.late_dataclass import dataclass
from loopcanary.protocols.imports import Line

FILE_MAX = 64 << 20
ALL_MAX = 1 << 30
FILES_MAX = 200_000
RATIO_MAX = 500
"""Unpacked to packed size, for members above a MiB."""
LINE_MAX = 1 << 20
LINES_MAX = 2_000_000
_MEMBERS_MAX = 50_000
_END = struct.Struct("<4s4H2LH")
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError, NotImplementedError)

_QUOTED = re.compile(r" {0,3}>(?: >)*(?: |$)")
"""The mark of an answer by mail or in Markdown; `>>>>>` is Matrix's own."""
_MARKUP = re.compile(r"[ >]*(?:`{3,}|~{3,})\s*[\w+-]{0,20}\s*|[ >]*")
_LOGCAT = re.compile(
    r"[ \t]{0,8}(?:(?:\d{4}-)?\d\d-\d\d \d\d:\d\d:\d\d\.\d{3,6}:?\s+(?:"
    r"(?P<pid1>\d+)\s+(?P<tid>\d+)\s+[VDIWEFA]\s+(?P<tag1>[^:]{0,100}?)\s*: ?"
    r"|(?P<pid2>\d+)-\d+/\S{0,200}\s+[VDIWEFA]/(?P<tag2>[^:]{0,100}?)\s*: ?"
    r"|[VDIWEFA]/(?P<tag3>[^:(]{0,100}?)\s*\(\s*(?P<pid3>\d+)\)\s*: ?)"
    r"|[VDIWEFA]/(?P<tag4>[^:(]{1,100}?)\s*\(\s*(?P<pid4>\d+)\)\s*: ?)",
    re.ASCII,
)
_FIRST = frozenset("0123456789VDIWEFA")
"""The first characters of a logcat's lines, which tell most other lines apart."""


class TooMuchError(Exception):
    """There is more than is read in one import. One line."""


@dataclass(slots=True)
class Bounds:
    """How much was read, and what was left out."""

    read: int = 0
    files: int = 0
    skipped: list[str] = field(default_factory=list)

    def take(self, file: IO[bytes], name: str) -> bytes:
        data = file.read(FILE_MAX + 1)
        if len(data) > FILE_MAX:
            data = data[:FILE_MAX]
            self.skipped.append(f"{name}: only its first {FILE_MAX >> 20} MiB were read")
        self.read, self.files = self.read + len(data), self.files + 1
        if self.read > ALL_MAX or self.files > FILES_MAX:
            raise TooMuchError(
                f"more than {ALL_MAX >> 30} GiB or {FILES_MAX:,} files: import fewer at a time"
            )
        return data


@dataclass(frozen=True, slots=True)
class Text:
    """One file's text."""

    name: str
    lines: list[str]


def texts(path: Path, bounds: Bounds) -> Iterator[Text]:
    """The text at the path, or those of a folder in order of their names."""
    if path.is_dir():
        for inner in sorted(path.rglob("*")):
            if stat.S_ISREG(inner.lstat().st_mode):
                yield from _of_file(inner, str(inner.relative_to(path)), bounds)
    else:
        yield from _of_file(path, path.name, bounds)


def _of_file(path: Path, name: str, bounds: Bounds) -> Iterator[Text]:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            bounds.skipped.append(f"{name}: it is not a file")
        elif zipfile.is_zipfile(path):
            yield from _of_zip(path, name, bounds)
        else:
            with path.open("rb") as file:
                yield from text_of(name, bounds.take(file, name))
    except _BROKEN as error:
        bounds.skipped.append(f"{name}: {error}")


def _of_zip(path: Path, name: str, bounds: Bounds) -> Iterator[Text]:
    with path.open("rb") as file, zipfile.ZipFile(_small(file)) as archive:
        for member in archive.infolist():
            if member.is_dir():
                continue
            shown = f"{name}/{member.filename}"
            is_bomb = member.file_size > max(1 << 20, RATIO_MAX * member.compress_size)
            if is_bomb or member.file_size > FILE_MAX:
                bounds.skipped.append(f"{shown}: it would unpack to {member.file_size:,} bytes")
                continue
            try:
                with archive.open(member) as inner:
                    data = bounds.take(inner, shown)
            except _BROKEN as error:
                bounds.skipped.append(f"{shown}: {error}")
                continue
            yield from text_of(shown, data)


def _small(file: IO[bytes]) -> IO[bytes]:
    """The zip, whose directory is small: `zipfile` would read one of a gigabyte. ValueError: it is not."""
    size = file.seek(0, 2)
    file.seek(max(0, size - (1 << 16) - _END.size - 20))
    tail = file.read()
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or at + _END.size > len(tail) or tail[max(at - 20, 0) : at].startswith(b"PK\x06\x07"):
        raise ValueError("this kind of zip cannot be read")
    entries, length = _END.unpack_from(tail, at)[4:6]
    if entries > _MEMBERS_MAX or length > _MEMBERS_MAX * 512:
        raise ValueError(f"it has more than {_MEMBERS_MAX:,} members")
    return file


def text_of(name: str, data: bytes) -> Iterator[Text]:
    """Decodes UTF-8, or UTF-16 with its mark; yields nothing of binary data."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = data.decode("utf-16", "replace")
    elif b"\0" in data[:4096]:
        return
    else:
        text = data.decode("utf-8-sig", "replace")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n", LINES_MAX)
    yield Text(name, [line[:LINE_MAX] for line in lines])


def streams(lines: Iterable[str]) -> list[list[Line]]:
    """Splits a logcat by process and tag, without the prefix that it writes; other texts are one stream.
    Marks of quotations go; a line without a prefix belongs to the one before."""
    of_it: list[Line] = []
    found = {("", ""): of_it}
    for number, line in enumerate(lines, 1):
        text = unquoted(line) if ">" in line[:4] else line
        if text.lstrip(" \t")[:1] in _FIRST and (prefix := _LOGCAT.match(text)):
            parts = prefix.groupdict("")
            pid = next(filter(None, (parts[f"pid{n}"] for n in range(1, 5))), "")
            tag = next(filter(None, (parts[f"tag{n}"] for n in range(1, 5))), "")
            of_it = found.setdefault((pid, tag), [])
            text = text[prefix.end() :]
        of_it.append(Line(number, text))
    return [one for one in found.values() if one]


def unquoted(line: str) -> str:
    quoted = _QUOTED.match(line)
    return line if quoted is None else line[quoted.end() :]


def says_nothing(line: str) -> bool:
    """Whether the line is empty, or a fence of code in Markdown."""
    return _MARKUP.fullmatch(line.strip()) is not None
