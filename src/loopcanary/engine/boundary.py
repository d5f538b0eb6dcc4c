"""The one place where failures of ours, or of plugged-in parts, stop inside the watched program.

A part that fails is switched off, logged once and counted; the program never sees an exception.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from loopcanary.unpatched import unpatched

_WORDS_MAX = 1_000
_EFFECTS = {
    "diagnosis": "the stall is counted and not told; others are",
    "drain": "a stall may be told late, or by the next report only",
    "engine": "loops are not watched, and the program runs as without loopcanary",
    "fork": "a child process may not be watched; this one is",
    "pipeline": "a stall may be lost; others are told",
    "recovery": "what dead processes left is taken in by the next report; this one is watched",
    "store": "while it fails stalls are shown and not stored; the next report may have the first ones",
}
"""What is lost with a part, and what is not."""
_KEPT = "figures may be missing; stalls are told and stored"
_PROBE = "probe "


class Boundary:
    """Calls parts so that nothing they raise gets out. Thread-safe.

    `say` shows a line to the person who runs the program; it must not block. Where the program has set up
    logging, the logger `loopcanary` gets it instead.
    """

    def __init__(self, say: Callable[[str], object]) -> None:
        self._say = say
        self._lock = unpatched("_thread", "allocate_lock")()
        self._failures: dict[str, int] = {}
        self._reasons: dict[str, str] = {}
        self._off: set[str] = set()
        self._own_threads: set[int] = set()
        self._user = effective_user()
        self._ident = unpatched("_thread", "get_ident")

    @contextmanager
    def on_own_thread(self) -> Iterator[None]:
        """In this block the calling thread runs plugged-in parts only: what is raised, SystemExit too, is
        the part's. On other threads it may come from a signal's handler."""
        ident = self._ident()
        self._own_threads.add(ident)
        try:
            yield
        finally:
            self._own_threads.discard(ident)

    def call(self, part: str, function: Callable[..., Any], /, *args: Any, keep: bool = False) -> Any:
        """What `function(*args)` returns; None where it raises, or where `part` is switched off. What is no
        Exception gets out on the program's own threads.

        `keep`: the part is not switched off by a failure (a store whose disk is full may have room later).
        """
        if part in self._off:
            return None
        try:
            return function(*args)
        except Exception as error:  # noqa: BLE001 - this is the boundary
            self.failed(part, error, keep=keep)
            return None
        except BaseException as error:
            if self._ident() not in self._own_threads:
                raise
            self.failed(part, error, keep=keep)
            return None

    def failed(self, part: str, error: BaseException, *, keep: bool = False) -> None:
        """Notes a failure that was caught elsewhere."""
        reason = _words(error)
        with self._lock:
            self._failures[part] = self._failures.get(part, 0) + 1
            first = part not in self._reasons
            self._reasons.setdefault(part, reason)
            if not keep:
                self._off.add(part)
        if first:
            effect = _effect(part, keep=keep)
            what = " and is switched off" if effect is None else f"; {effect}"
            self.tell(f"{part} failed{what}: {reason}{self._change_of_user()}")

    def _change_of_user(self) -> str:
        user = effective_user()
        if user == self._user:
            return ""
        return (
            f" (the program changed its user from {self._user} to {user}: what loopcanary made, or would"
            " import, may be closed to it; docs/production.md)"
        )

    def switch_off(self, part: str) -> None:
        """Never calls the part."""
        self._off.add(part)

    def tell(self, text: str) -> None:
        """One line for people. Raises nothing."""
        line = "loopcanary: " + text.replace("\n", " ")
        try:
            logging = sys.modules.get("logging")
            # logging's last resort writes to stderr, and blocks if that is a pipe without a reader.
            if logging is not None and logging.getLogger("loopcanary").hasHandlers():
                logging.getLogger("loopcanary").warning("%s", line)
            else:
                self._say(line + "\n")
        except Exception:  # noqa: BLE001 - a handler of the program's, or a stderr that is gone
            return

    def renew_after_fork(self) -> None:
        """In a forked child: a thread that is not there may have held the lock."""
        self._lock = unpatched("_thread", "allocate_lock")()
        self._own_threads.clear()

    def counts(self) -> dict[str, int]:
        with self._lock:
            return {f"failures_{part}": count for part, count in self._failures.items()}

    def reasons(self) -> dict[str, str]:
        """First failure of each part, for `doctor`."""
        with self._lock:
            return dict(self._reasons)


def effective_user() -> int:
    """Whose rights this process has; 0 where the system has no such thing."""
    return os.geteuid() if hasattr(os, "geteuid") else 0


def _effect(part: str, *, keep: bool) -> str | None:
    """What is lost with it, and what is not; None: nothing but the part."""
    if part.startswith(_PROBE):
        kind = part.removeprefix(_PROBE)
        return f"{kind} may stay patched" if keep else f"{kind} is not watched, other loops are"
    return _EFFECTS.get(part, _KEPT if keep else None)


def _words(error: BaseException) -> str:
    """The error's text. A foreign exception may fail to give one, or never end."""
    name = type(error).__name__
    try:
        return f"{name}: {error}"[:_WORDS_MAX]
    except Exception as another:  # noqa: BLE001 - this is the boundary
        return f"{name}, and its words failed: {type(another).__name__}"
