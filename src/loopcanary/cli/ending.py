"""The end of a command that runs until it is stopped."""

from __future__ import annotations

import select
import signal
import socket
from contextlib import suppress
from types import FrameType
from typing import IO

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


class End:
    """Asked for by a signal, or by a reader that is gone. Once a process, main thread."""

    def __init__(self, reader_of: IO[str] | None = None) -> None:
        """`reader_of`: a stream that is written to. Where nobody reads it any more (`... | head -1`), that is
        the end, and not only when something is to be written."""
        self.is_asked_for = False
        # A lock that a signal's handler takes may be in use by what it interrupts; a byte in a socket is not.
        self._woken, self._wakes = socket.socketpair()
        self._wakes.setblocking(False)
        self._reader = _hung_up(reader_of)
        signal.set_wakeup_fd(self._wakes.fileno(), warn_on_full_buffer=False)
        for name in _SIGNALS:
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), self._ask)

    def wait(self, seconds: float) -> None:
        """Returns at the end, or after this time."""
        if self.is_asked_for:
            return
        if self._reader is None:
            select.select([self._woken], [], [], seconds)
            return
        self._reader.register(self._woken, select.POLLIN)
        woken = self._woken.fileno()
        found = self._reader.poll(seconds * 1_000)
        self.is_asked_for |= any(descriptor != woken for descriptor, _ in found)

    def _ask(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self.is_asked_for = True


def _hung_up(stream: IO[str] | None) -> select.poll | None:
    """Whether the reader of a pipe, socket or terminal is gone, by poll(2) for no events.

    None where that is not known: for files, on Windows, for a stream that was closed from the start.
    """
    if stream is None or not hasattr(select, "poll"):
        return None
    poll = select.poll()
    with suppress(OSError, ValueError):
        poll.register(stream.fileno(), 0)
        return poll
    return None
