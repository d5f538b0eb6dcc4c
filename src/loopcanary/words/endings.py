"""What ended a process in a hang, in words. One line, printable."""

from __future__ import annotations

from dataclasses import replace

from loopcanary.model.session import KilledBy
from loopcanary.words.text import printable

BY_EXIT = "os._exit: the program ended itself"
_NAME_MAX = 100


def killed_by_words(killed: KilledBy | None) -> str:
    """`SIGABRT from gunicorn (pid 12, uid 1000); gunicorn arbiter: worker timeout 30 s`; what is not known is
    left out; empty where nothing is."""
    if killed is None:
        return ""
    who = killed.signal or ("a signal" if killed.pid is not None else "")
    if killed.pid is not None:
        who += f" from {_sender(killed.pid, killed.uid, killed.command)}"
    return printable("; ".join(filter(None, (who, killed.reason))), 3 * _NAME_MAX)


def with_reason(killed: KilledBy | None, reason: str) -> KilledBy:
    """With this reason before the one that it may have."""
    seen = killed or KilledBy()
    return replace(seen, reason="; ".join(filter(None, (reason, seen.reason))))


def _sender(pid: int, uid: int | None, command: str | None) -> str:
    if pid == 0:
        return "outside the container"
    about = f"pid {pid}" + ("" if uid is None else f", uid {uid}")
    return f"{printable(command, _NAME_MAX)} ({about})" if command else about
