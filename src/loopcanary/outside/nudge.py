"""Wakes a thread that waits in epoll, without a signal that the program or its parent could see.

A script that `sys.remote_exec` has handed over runs when the main thread next runs Python code or, since it
looks there as it does for signals, when its wait is interrupted. That of an idle event loop may never end.
PTRACE_SEIZE and PTRACE_INTERRUPT end an epoll_wait with EINTR (ptrace(2), signal(7)); CPython then looks, and
waits on. The thread stands for some microseconds. Waits that the kernel takes up again by itself (futexes,
poll, sleeps) are left alone: they would not end.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time

from loopcanary.outside.processes import Process
from loopcanary.outside.tasks import read_task

INTERRUPTIBLE = frozenset({"epoll_wait", "epoll_pwait", "epoll_pwait2"})
_SEIZE, _INTERRUPT, _DETACH = 0x4206, 0x4207, 17
_EVENT_STOP = 128
_WALL = 0x40000000
_PATIENCE_S = 30.0
"""It stops as soon as it gets a core, and before that it cannot be let go."""
_LOOK_EVERY_S = 0.001


def nudge(process: Process, call_name: str | None) -> bool:
    """Interrupts the main thread's wait, if it is in one that this ends; whether it was. Never raises."""
    task = read_task(process, process.pid)
    if task is None or task.state != "S" or call_name not in INTERRUPTIBLE:
        return False
    try:
        return _interrupt(process.pid)
    except (OSError, AttributeError):
        return False


def _interrupt(tid: int) -> bool:
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    ptrace.restype = ctypes.c_long
    if ptrace(_SEIZE, tid, None, None) != 0:
        return False  # not allowed, or a debugger has it
    handed_on = 0
    try:
        if ptrace(_INTERRUPT, tid, None, None) != 0:
            return False
        handed_on = _stopped_by(tid)
    finally:
        # Where it does not stop in time this fails; it is let go when this command ends.
        ptrace(_DETACH, tid, None, handed_on)
    return True


def _stopped_by(tid: int) -> int:
    """Waits for the thread to stop; the signal that stopped it instead, which it has to get, 0 none."""
    until = time.monotonic() + _PATIENCE_S
    while time.monotonic() < until:
        stopped, status = os.waitpid(tid, os.WNOHANG | _WALL)
        if stopped == tid:
            is_ours = status >> 16 == _EVENT_STOP and os.WSTOPSIG(status) in (signal.SIGTRAP, signal.SIGSTOP)
            return 0 if is_ours or not os.WIFSTOPPED(status) else os.WSTOPSIG(status)
        time.sleep(_LOOK_EVERY_S)
    return 0
