"""What /proc says of a process that is not a child of ours, and how it ended: what `wait` tells its
parent."""

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


def waits_for_children(pid: int) -> bool:
    """Whether a thread of the process sleeps in a wait for a child. False where this user may not know."""
    try:
        return any(path.read_text() == "do_wait" for path in Path(f"/proc/{pid}/task").glob("*/wchan"))
    except OSError:
        return False


def has_our_rights(pid: int) -> bool | None:
    """Whether a process has this one's real user and all its permitted capabilities; None: it is gone."""
    own, theirs = _rights_of(os.getpid()), _rights_of(pid)
    return None if own is None or theirs is None else own[0] == theirs[0] and not own[1] & ~theirs[1]


def _rights_of(pid: int) -> tuple[int, int] | None:
    """The owner of its folder is root where a process has changed its user."""
    try:
        status = Path(f"/proc/{pid}/status").read_bytes()
        user, permitted = (status.partition(name)[2].split(None, 1)[0] for name in (b"\nUid:", b"\nCapPrm:"))
        return int(user), int(permitted, 16)
    except (OSError, ValueError, IndexError):
        return None


def _of_reaped(pidfd: int, _: int) -> int | None:
    asked = _INFO.pack(_HAS_EXIT, *[0] * 13)
    answer = _INFO.unpack(fcntl.ioctl(pidfd, _GET_INFO, asked))
    return int(answer[-1]) if answer[0] & _HAS_EXIT else None


def _of_zombie(pidfd: int, pid: int) -> int | None:
    fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    signal.pidfd_send_signal(pidfd, 0)  # ESRCH: the number may be another process's meanwhile
    # 0, too, where this user may not see it.
    return int(fields[_EXIT_CODE]) or None if fields[0] == b"Z" else None
