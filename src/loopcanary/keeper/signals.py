"""What wakes the keeper from outside: the wish for its end, and folders in which names came or went."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
from contextlib import suppress
from pathlib import Path
from types import FrameType

from loopcanary.keeper.seat import leads_to

_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LAST_S = 0.8
"""From the wish for its end to the end: what is not done then is done by the next keeper or command."""
_BYTES_AT_ONCE = 4_096


class Signals:
    """Once a process, main thread."""

    def __init__(self) -> None:
        self.is_end = False
        self._changed = False
        self._woken, wakes = socket.socketpair()
        self._wakes = wakes  # it would be closed else
        for one in (self._woken, wakes):
            one.setblocking(False)
        signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGIO, self._note_change)
        signal.signal(signal.SIGALRM, _leave)
        for number in _ENDS:
            signal.signal(number, self._end)

    @property
    def descriptor(self) -> int:
        """Readable after a signal."""
        return self._woken.fileno()

    def folders_changed(self) -> bool:
        """Whether a folder that is followed has changed since the last call."""
        with suppress(BlockingIOError):
            while len(self._woken.recv(_BYTES_AT_ONCE)) == _BYTES_AT_ONCE:
                pass
        changed, self._changed = self._changed, False
        return changed

    def forgo_deadline(self) -> None:
        """All is given back. The interpreter, which is about to end, takes handlers back: the signal would
        end the process as one that was not asked to."""
        signal.setitimer(signal.ITIMER_REAL, 0)

    def _note_change(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self._changed = True

    def _end(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self.is_end = True
        signal.setitimer(signal.ITIMER_REAL, _LAST_S)


def _leave(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    os._exit(0)


class FollowedFolder:
    """A folder that is held open; SIGIO comes when a name in it is made, renamed or removed.

    By fcntl(2), F_NOTIFY: Python has no function for inotify. OSError where there is no such folder.
    """

    def __init__(self, path: Path, *, removals_only: bool = False) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        news = fcntl.DN_DELETE | (0 if removals_only else fcntl.DN_CREATE | fcntl.DN_RENAME)
        self.is_heard = True
        """False: this kernel or file system does not say."""
        try:
            fcntl.fcntl(self._descriptor, fcntl.F_NOTIFY, news | fcntl.DN_MULTISHOT)
        except OSError:
            self.is_heard = False

    def is_at(self, path: Path) -> bool:
        """Whether the path still leads to it."""
        return leads_to(path, self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)
