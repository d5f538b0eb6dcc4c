"""A stderr that never blocks and never raises, and what it can show."""

from __future__ import annotations

import errno
import os
import stat
import sys
from contextlib import suppress
from typing import NamedTuple

from loopcanary.facts import working_folder
from loopcanary.protocols.plugins import Look
from loopcanary.unpatched import unpatched
from loopcanary.whose_stderr import look

_PIPE_BUF = 4096
"""A pipe or socket that polls as writable takes so many bytes without blocking (pipe(7), POSIX)."""
_TERMINAL_SURE = 1
"""A terminal that polls as writable may have room for no more."""
_PATIENCE_MS = 50


class Terminal:
    """Writes whole blocks to a file descriptor, or drops and counts them. One thread at a time.

    Each write checks the descriptor first: a program that closes its stderr may get the same number back for
    a file of its own. Nothing of ours keeps it open, so a reader of its end does not wait for us.
    """

    def __init__(self, descriptor: int = 2) -> None:
        self._descriptor = descriptor
        self._identity = _identity(descriptor)
        self._encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
        self._patience_ms = _PATIENCE_MS
        self._rest = b""
        """The rest of the last block: half an escape sequence must not stay alone."""
        self.dropped = 0
        """The number of blocks that could not be shown."""

    def write(self, block: str) -> bool:
        """Shows the block, in one write if it can; False: it was dropped."""
        rest = self._rest
        try:
            data = rest + block.encode(self._encoding, "backslashreplace")
            sent = self._send(data)
        except (OSError, ValueError, LookupError):
            self.dropped += 1
            return False
        begun = sent > len(rest)
        self._rest = data[sent:] if begun else rest[sent:]
        # Waits once for a reader that has stopped, not at every block.
        self._patience_ms = 0 if self._rest or not begun else _PATIENCE_MS
        self.dropped += not begun
        return begun

    def is_terminal(self) -> bool:
        return self._identity is not None and os.isatty(self._descriptor)

    def look(self) -> Look:
        """The abilities of the terminal, with its present width."""
        colour, links, width = look(self._descriptor, is_terminal=self.is_terminal())
        return Look(colour=colour, links=links, width=width, folder=working_folder())

    def _send(self, data: bytes) -> int:
        """Sends as many bytes as it can without blocking; returns their number. OSError: no stderr."""
        if self._identity is None or _identity(self._descriptor) != self._identity:
            raise OSError(errno.EBADF, "stderr is closed, or something else now")
        if self._identity.kind in (stat.S_IFIFO, stat.S_IFCHR):
            # Non-blocking is a property of the open file, which the program shares; so it is opened anew.
            with suppress(OSError):
                return _send_nonblocking(f"/proc/self/fd/{self._descriptor}", data, self._patience_ms)
        size = _TERMINAL_SURE if os.isatty(self._descriptor) else _PIPE_BUF
        return _send_polling(self._descriptor, data, size, self._patience_ms)


class _Identity(NamedTuple):
    device: int
    inode: int
    kind: int
    terminal: int


def _identity(descriptor: int) -> _Identity | None:
    try:
        status = os.fstat(descriptor)
    except OSError:
        return None
    return _Identity(status.st_dev, status.st_ino, stat.S_IFMT(status.st_mode), status.st_rdev)


def _send_nonblocking(path: str, data: bytes, patience_ms: int) -> int:
    """OSError: it cannot be opened anew (a socket, a terminal of another user), or it has no reader."""
    descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        _is_writable(descriptor, patience_ms)
        return os.write(descriptor, data)
    except BlockingIOError:
        return 0
    finally:
        os.close(descriptor)


def _send_polling(descriptor: int, data: bytes, size: int, patience_ms: int) -> int:
    """Sends pieces for as long as there is room for one."""
    sent = 0
    while sent < len(data) and _is_writable(descriptor, patience_ms):
        sent += os.write(descriptor, data[sent : sent + size])
    return sent


def _is_writable(descriptor: int, patience_ms: int) -> bool:
    """Whether there is room within a moment."""
    try:
        import select

        poll = unpatched("select", "poll")()
    except (ImportError, AttributeError):  # Windows polls sockets only
        return True
    poll.register(descriptor, select.POLLOUT)
    events = poll.poll(patience_ms)
    return bool(events) and not events[0][1] & (select.POLLERR | select.POLLHUP | select.POLLNVAL)
