"""Source files, read for the text of a line. The only input of the diagnosis that is not evidence."""

from __future__ import annotations

import io
import linecache
import os
import stat
import threading
import tokenize
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from loopcanary.late_dataclass import dataclass
from loopcanary.whose_folder import may_show

if TYPE_CHECKING:
    from loopcanary.model.stall import Culprit

FILE_BYTES_MAX = 4 << 20
_FILES_KEPT = 64
_BYTES_KEPT = 512 << 10
"""Of all kept files together, but for the newest: as lines they take two to three times as much."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SourceLines:
    """The lines of one file, without line ends, and when it was last written (None: never since it was
    compiled, such as a notebook's cell)."""

    lines: tuple[str, ...]
    modified_wall_ns: int | None = None


class SourceReader(Protocol):
    """Gives source text, or None where there is none. Raises nothing."""

    def read(self, file: str) -> SourceLines | None:
        """The text of a file, by the name its code objects have."""
        ...


class FileSources:
    """Reads regular files of at most 4 MiB, in zip archives too, keeps the last ones, and looks again when
    one has changed. For names that are no files (`<string>`, notebook cells): what linecache was given.
    Thread-safe."""

    def __init__(self, root: str = "") -> None:
        """`root`: of the file system that the names are of; empty: this process's."""
        self._root = root
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[tuple[int, int, int], SourceLines]] = {}

    def read(self, file: str) -> SourceLines | None:
        """The text of a file as it is now. One stat where it is kept."""
        if file.startswith("<"):
            return None if self._root else _from_linecache(file)
        file = f"{self._root}{file}"
        try:
            archive, facts = _look(file)
        except (OSError, ValueError):
            return None if self._root else _from_linecache(file)  # IPython names cells as files of /tmp
        stamp = (facts.st_mtime_ns, facts.st_size, facts.st_ino)
        kept = self._kept.get(file)
        if kept is not None and kept[0] == stamp:
            return kept[1]
        is_too_long = archive is None and facts.st_size > FILE_BYTES_MAX
        if is_too_long or not stat.S_ISREG(facts.st_mode) or not may_show(facts):
            return None
        data = _read_file(file, facts) if archive is None else _read_member(archive, file)
        text = None if data is None else to_lines(data, facts.st_mtime_ns)
        if text is not None:
            self._keep(file, stamp, text)
        return text

    def _keep(self, file: str, stamp: tuple[int, int, int], text: SourceLines) -> None:
        with self._lock:
            self._kept.pop(file, None)
            self._kept[file] = (stamp, text)
            while len(self._kept) > 1 and not self._fits():
                del self._kept[next(iter(self._kept))]

    def _fits(self) -> bool:
        sizes = [size for (_, size, _), _ in self._kept.values()]
        return len(sizes) <= _FILES_KEPT and sum(sizes) <= _BYTES_KEPT


def _look(file: str) -> tuple[Path | None, os.stat_result]:
    """The archive that a file is in, such as `app.pyz` of `app.pyz/web/views.py`, and the facts of what is on
    disk. OSError where there is nothing."""
    place = Path(file)
    while True:
        try:
            facts = place.stat()
        except NotADirectoryError:
            place = place.parent
        else:
            return None if place == Path(file) else place, facts


def _read_file(file: str, facts: os.stat_result) -> bytes | None:
    """A file of which these are the facts; None if it is replaced, or grows, at this moment."""
    size = facts.st_size
    try:
        with open(file, "rb", opener=_without_waiting) as stream:
            if not os.path.samestat(os.fstat(stream.fileno()), facts):
                return None
            data = stream.read(size + 1)  # which takes as much memory as it is asked for, whatever there is
    except OSError:
        return None
    return data if len(data) <= size else None


def _without_waiting(file: str, flags: int) -> int:
    """A pipe may have taken the file's place."""
    return os.open(file, flags | getattr(os, "O_NONBLOCK", 0))


def _read_member(archive: Path, file: str) -> bytes | None:
    from zipfile import ZipFile  # most programs lie in no archive

    try:
        with ZipFile(archive) as opened, opened.open(Path(file).relative_to(archive).as_posix()) as stream:
            return stream.read(FILE_BYTES_MAX + 1)
    except Exception:  # noqa: BLE001 - what a damaged archive raises depends on how it was packed
        return None


def to_lines(data: bytes, modified_wall_ns: int) -> SourceLines | None:
    """None: too many bytes, or no text."""
    if len(data) > FILE_BYTES_MAX:
        return None
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)
    except (SyntaxError, ValueError, LookupError):
        return None
    # Not splitlines(): that also splits at form feeds and others, where Python counts no line.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return SourceLines(lines=tuple(lines), modified_wall_ns=modified_wall_ns)


def _from_linecache(file: str) -> SourceLines | None:
    entry = linecache.cache.get(file)
    if not isinstance(entry, tuple) or len(entry) < 3:
        return None
    return SourceLines(lines=tuple(str(line).rstrip("\r\n") for line in entry[2]))


def lines_as_run(file: str, started_wall_ns: int) -> tuple[str, ...]:
    """The lines of a file; none where it was changed after this start of its program."""
    text = FileSources().read(file)
    return () if text is None or (text.modified_wall_ns or 0) > started_wall_ns else text.lines


def as_written(culprit: Culprit | None, started_wall_ns: int) -> Culprit | None:
    """With its line, unless it has one, or the file was changed after this start of its program."""
    if culprit is None or culprit.source is not None:
        return culprit
    lines = lines_as_run(culprit.file, started_wall_ns)
    return (
        replace(culprit, source=lines[culprit.line - 1].strip())
        if 0 < culprit.line <= len(lines)
        else culprit
    )
