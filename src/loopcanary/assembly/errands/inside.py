"""Errands: what a watched program does for a command.

On a thread of ours, with the canary's lock held: no stop and no fork comes between. An errand is a file
beside the flight file, taken away when it is read; another has the ids of those that are over. Both are
another process's: nothing in them is trusted.
"""

from __future__ import annotations

import json
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from loopcanary.assembly.methods import inside as methods
from loopcanary.assembly.tracing import errands as tracers
from loopcanary.model.method_map import ANSWER, ERRAND, ERRAND_ENDS

if TYPE_CHECKING:
    from loopcanary._native import Native
    from loopcanary.engine.canary import Canary

_BYTES_MAX = 1 << 16
_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


def run_errand(canary: Canary, native: Native) -> None:
    """Does what a command wants; ends what has taken longer than it wanted."""
    flight = getattr(canary.backend, "file", None)
    if flight is None:
        return
    ends = _taken(flight + ERRAND_ENDS).split()
    methods.end_what_is_over(canary, native, flight, ends)
    errand = _read(_taken(flight + ERRAND))
    if errand is None or errand["id"].encode() in ends:
        return
    with canary.boundary.on_own_thread():  # others' tracers may be called
        if tracers.is_one(errand):
            answer = tracers.run(canary, errand)
        elif methods.is_one(errand):
            answer = methods.run(canary, native, flight, errand)
        else:
            answer = {"error": "it does not know what to do: it runs another version of loopcanary"}
    _leave(flight, {"id": errand["id"], **answer})


def _taken(path: str) -> bytes:
    """What is in a file, which is then no more; empty: it is not there, or not ours."""
    mine = path + ".taken"  # one that is put there meanwhile stays
    with suppress(OSError):
        os.rename(path, mine)  # noqa: PTH104 - pathlib need not be loaded here
        try:
            descriptor = os.open(mine, os.O_RDONLY | _FLAGS)
        finally:
            os.unlink(mine)  # noqa: PTH108
        try:
            facts = os.fstat(descriptor)
            is_ours = stat.S_ISREG(facts.st_mode) and facts.st_uid == os.geteuid()
            return os.read(descriptor, _BYTES_MAX) if is_ours else b""
        finally:
            os.close(descriptor)
    return b""


def _read(text: bytes) -> dict[str, Any] | None:
    """The errand; None: it is none."""
    with suppress(ValueError, RecursionError):
        errand = json.loads(text)
        if isinstance(errand, dict) and isinstance(errand.get("id"), str):
            return errand
    return None


def _leave(flight: str, answer: dict[str, Any]) -> None:
    """Where the command looks for it; in one step."""
    path = flight + ANSWER
    with suppress(OSError):  # who asked does not get it, and says so
        with suppress(FileNotFoundError):
            os.unlink(path + ".new")  # noqa: PTH108
        descriptor = os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(answer, file)
        os.rename(path + ".new", path)  # noqa: PTH104
