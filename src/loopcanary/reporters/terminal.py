"""A stderr that never blocks and never raises, and what it can show."""

from __future__ import annotations

import os
import stat
import sys
from dataclasses import dataclass

_PIPE_BUF = 4096
"""A pipe, socket or terminal that polls as writable takes this much without blocking (pipe(7), POSIX)."""
_PATIENCE_MS = 50
_WIDTH_DEFAULT = 80
_WIDTH_LEAST, _WIDTH_MOST = 40, 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What the other end can show."""

    colour: bool = False
    links: bool = False
    width: int = _WIDTH_DEFAULT
    folder: str = ""
    """Paths below it are shown relative to it."""


class Terminal:
    """Writes whole blocks to a file descriptor, or drops and counts them. One thread at a time.

    The descriptor is checked before each write: a program that closes its stderr may get the same number
    back for a file of its own, which is not ours to write to.
    """

    def __init__(self, descriptor: int = 2) -> None:
        self._descriptor = descriptor
        self._identity = _identity(descriptor)
        self._encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
        self.dropped = 0
        """Blocks that nobody could be shown."""

    def write(self, block: str) -> bool:
        """Shows the block in one write; False if it was dropped, or cut off."""
        try:
            data = block.encode(self._encoding, "backslashreplace")
            shown = self._is_ours() and all(self._write_piece(piece) for piece in _pieces(data))
        except (OSError, ValueError, LookupError):
            shown = False
        self.dropped += not shown
        return shown

    def look(self) -> Look:
        """What the terminal can show, and how wide it is now."""
        kind = os.environ.get("TERM", "")
        is_terminal = self._identity is not None and os.isatty(self._descriptor) and kind != "dumb"
        return Look(
            # https://no-color.org: present and not empty, whatever its value.
            colour=is_terminal and not os.environ.get("NO_COLOR"),
            links=is_terminal and kind not in {"linux", ""},
            width=self._width() if is_terminal else _WIDTH_DEFAULT,
            folder=_current_folder(),
        )

    def _is_ours(self) -> bool:
        return self._identity is not None and _identity(self._descriptor) == self._identity

    def _write_piece(self, piece: bytes) -> bool:
        return _is_writable(self._descriptor) and os.write(self._descriptor, piece) == len(piece)

    def _width(self) -> int:
        try:
            columns = os.get_terminal_size(self._descriptor).columns
        except OSError:
            return _WIDTH_DEFAULT
        return min(max(columns, _WIDTH_LEAST), _WIDTH_MOST) if columns else _WIDTH_DEFAULT


def _identity(descriptor: int) -> tuple[int, int, int] | None:
    try:
        status = os.fstat(descriptor)
    except OSError:
        return None
    return status.st_dev, status.st_ino, stat.S_IFMT(status.st_mode)


def _is_writable(descriptor: int) -> bool:
    try:
        import select

        poll = select.poll()
    except (ImportError, AttributeError):  # Windows polls sockets only
        return True
    poll.register(descriptor, select.POLLOUT)
    events = poll.poll(_PATIENCE_MS)
    return bool(events) and not events[0][1] & (select.POLLERR | select.POLLHUP | select.POLLNVAL)


def _pieces(data: bytes) -> list[bytes]:
    """The data cut at line ends into pieces that one write takes; nearly always one piece."""
    pieces = []
    while len(data) > _PIPE_BUF:
        end = data.rfind(b"\n", 0, _PIPE_BUF) + 1 or _PIPE_BUF
        pieces.append(data[:end])
        data = data[end:]
    return [*pieces, data]


def _current_folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - pathlib is not loaded yet in many programs
    except OSError:
        return ""
