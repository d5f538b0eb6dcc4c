"""What root quotes of another process's sources.

A flight file names files, and a program that root has started still writes to it when it has given up root's
rights: root could be made to store a line of any file. What lies beside the store, readable by everyone, is
quoted all the same: a container that shares the store's folder has these files, too.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from loopcanary import flight
from loopcanary.source_text import FILE_BYTES_MAX, SourceLines, SourceReader, to_lines
from loopcanary.whose_folder import REACHED, open_file

_FILES_MAX = 16


class RootsSources:
    """Quotes a file that does not lie beside the store for the first time only while its program is root's.
    The evidence was read before, so a process with these rights stored it. Of a program that has ended since,
    what it was told then stays."""

    def __init__(self, sources: SourceReader, is_roots: Callable[[], bool], store: Path) -> None:
        """`is_roots`: whether the program is root's now. `store`: the folder."""
        self._sources = sources
        self._is_roots = is_roots
        self._beside = store.parent.resolve()
        self._read: dict[str, SourceLines] = {}

    def read(self, file: str) -> SourceLines | None:
        """See SourceReader."""
        known = self._read.get(file)
        if known is None and (found := self._sources.read(file)) is not None and self._is_roots():
            while len(self._read) >= _FILES_MAX:
                del self._read[next(iter(self._read))]
            known = self._read[file] = found
        return known or self._read_beside(file)

    def _read_beside(self, file: str) -> SourceLines | None:
        """By the descriptor's own path, as links on the way may change meanwhile."""
        try:
            with os.fdopen(open_file(os.path.realpath(file)), "rb") as opened:
                facts, here = os.fstat(opened.fileno()), self._beside.stat()
                place = Path(f"{REACHED}{opened.fileno()}").readlink()
                is_there = place.is_relative_to(self._beside) and self._beside.parent != self._beside
                if not is_there or facts.st_dev != here.st_dev or not facts.st_mode & stat.S_IROTH:
                    return None
                return to_lines(opened.read(FILE_BYTES_MAX + 1), facts.st_mtime_ns)
        except (OSError, ValueError):
            return None


def is_roots(pid: int, file: str) -> bool:
    """Whether the process writes this flight file, and has the rights of this one, root's, now."""
    from loopcanary.keeper.exits import has_our_rights  # of Linux

    return has_our_rights(pid) is True and flight.stores_to(pid, file)


def unquoted(told: Any, found: Any) -> Any:
    """The issue without a line that its program has not told."""
    before, after = (getattr(one, "culprit", None) for one in (told, found))
    if after is None or after.source == getattr(before, "source", None):
        return found
    return replace(found, culprit=replace(after, source=None))


def is_root() -> bool:
    """Whether this process is root's."""
    return sys.platform == "linux" and os.geteuid() == 0
