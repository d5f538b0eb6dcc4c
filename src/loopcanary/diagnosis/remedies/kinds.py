"""What a remedy is, and how the same way out is called on loops other than asyncio's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from loopcanary.model import Cause


class Way(Enum):
    """The ways out, in the words of no loop."""

    TIMER = "a timer in place of sleeping"
    THREAD = "another thread: the call lets other threads run"
    PROCESS = "another process: the call holds the GIL"
    PIECES = "smaller pieces: Python code that computes"
    CHILD = "the loop's own way to await a child process"
    RESOLVE = "the loop's own way to resolve names"
    CLIENT = "a client made for the loop, or a thread"
    HANDOVER = "no waiting for threads: they hand over their result"
    INPUT = "input read on another thread"


class Family(Enum):
    """Loops that are told the same."""

    TRIO = "trio"
    QT = "qt"
    TK = "tk"
    GLIB = "glib"
    GEVENT = "gevent"
    TWISTED = "twisted"
    THREAD = "thread"
    GAME = "game"
    PLAIN = "plain"


_PREFIXES = {
    "trio": Family.TRIO,
    "anyio": Family.TRIO,
    "qt": Family.QT,
    "pyqt": Family.QT,
    "pyside": Family.QT,
    "tk": Family.TK,
    "glib": Family.GLIB,
    "gtk": Family.GLIB,
    "gevent": Family.GEVENT,
    "twisted": Family.TWISTED,
    "thread": Family.THREAD,
    "pygame": Family.GAME,
}


def family_of(loop: str) -> Family:
    """The family of a kind of loop, by how its name begins; plain where no table knows it."""
    name = loop.lower()
    return next((family for prefix, family in _PREFIXES.items() if name.startswith(prefix)), Family.PLAIN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """One way out. `{call}` stands for the call as written.

    `names`: dotted names of calls as they are usually written. A call fits whose name is the same, or ends
    with it after a dot; one without a dot is a built-in's; `*.execute` fits any receiver. A bare call, as
    `from time import sleep` gives, fits by its last part where `causes` does too. `modules`: packages or
    modules; a stall fits that reached one of their frames below the culprit.
    """

    asyncio: str
    way: Way
    names: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    causes: frozenset[Cause] = frozenset()
    """Only for these causes; empty: for any."""
    within: tuple[tuple[str, str], ...] = ()
    """Package and better words for asyncio's loops where the stack leads through the package."""
    elsewhere: Mapping[Family, str] | None = None
    """Better words for single families than their way's."""


WAITING = frozenset({Cause.NETWORK_IO, Cause.DNS, Cause.LOCK, Cause.SLEEP, Cause.UNKNOWN})
"""Causes of a call that waits for others."""
COMPUTING = frozenset({Cause.CPU, Cause.NATIVE_CPU, Cause.UNKNOWN})
FILES = frozenset({Cause.DISK_IO, Cause.NATIVE_CPU, Cause.CPU, Cause.UNKNOWN})
LOCKS = frozenset({Cause.LOCK, Cause.UNKNOWN})
