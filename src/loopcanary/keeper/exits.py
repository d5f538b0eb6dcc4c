"""How a process ended that is no child of ours: what `wait` returns to its parent."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
from pathlib import Path
from typing import Final

from loopcanary.model.session import signal_name

_INFO: Final = struct.Struct("<QQ11Ii")
"""struct pidfd_info of Linux 6.13: mask, cgroup, eleven ids, exit code."""
_GET_INFO: Final = 3 << 30 | _INFO.size << 16 | 0xFF << 8 | 11
_HAS_EXIT: Final = 1 << 3
_EXIT_CODE: Final = 52 - 3
"""Field of /proc/PID/stat, counted from the state on."""


def wait_status(pidfd: int, pid: int) -> int | None:
    """The status of the process that a pidfd, which is readable, is of. None: neither its parent has waited
    for it (Linux 6.15 says it afterwards), nor may this user see it as a zombie."""
    for ask in (_of_reaped, _of_zombie, _of_reaped):
        try:
            status = ask(pidfd, pid)
        except (OSError, ValueError, IndexError, struct.error):
            continue
        if status is not None:
            return status
    return None


def signal_of(status: int | None) -> str | None:
    """The name of the signal that ended it: `SIGKILL`; None: it exited, or the status is not known."""
    if status is None or not os.WIFSIGNALED(status):
        return None
    return signal_name(os.WTERMSIG(status))


def _of_reaped(pidfd: int, _: int) -> int | None:
    asked = _INFO.pack(_HAS_EXIT, *[0] * 13)
    answer = _INFO.unpack(fcntl.ioctl(pidfd, _GET_INFO, asked))
    return int(answer[-1]) if answer[0] & _HAS_EXIT else None


def _of_zombie(pidfd: int, pid: int) -> int | None:
    fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    signal.pidfd_send_signal(pidfd, 0)  # ESRCH: the number may be another process's meanwhile
    # 0, too, where this user may not see it.
    return int(fields[_EXIT_CODE]) or None if fields[0] == b"Z" else None
