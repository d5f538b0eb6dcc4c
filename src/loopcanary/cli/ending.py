"""The end of a command that runs until somebody ends it."""

from __future__ import annotations

import select
import signal
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


class End:
    """Asked for by a signal. Once a process, on the main thread."""

    def __init__(self) -> None:
        self.is_asked_for = False
        # A lock that a signal's handler takes may be in use by what it interrupts; a byte in a socket is not.
        self._woken, self._wakes = socket.socketpair()
        self._wakes.setblocking(False)
        signal.set_wakeup_fd(self._wakes.fileno(), warn_on_full_buffer=False)
        for name in _SIGNALS:
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), self._ask)

    def wait(self, seconds: float) -> None:
        """Returns at the end, or after so long."""
        if not self.is_asked_for:
            select.select([self._woken], [], [], seconds)

    def _ask(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self.is_asked_for = True
