"""Errands: what a watched program does for a command.

On a thread of ours, with the canary's lock held: no stop and no fork comes between. An errand is a file
beside the flight file, taken away when it is read; another has the ids of those that are over. Both are
another process's: nothing in them is trusted.
"""

from __future__ import annotations

import json
import os
import stat
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from loopcanary.engine.calls import AskedCalls
from loopcanary.model.method_map import ANSWER, ERRAND, ERRAND_ENDS, remove_calls
from loopcanary.tracers.methods import CallsTracer, CannotTraceError

if TYPE_CHECKING:
    from loopcanary._native import Native
    from loopcanary.engine.canary import Canary

_BYTES_MAX = 1 << 16
_SECONDS_MAX = 3_600.0
_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


def run_errand(canary: Canary, native: Native) -> None:
    """Does what a command wants; ends what has taken longer than it wanted."""
    flight = getattr(canary.backend, "file", None)
    if flight is None:
        return
    ends = _taken(flight + ERRAND_ENDS).split()
    _end_what_is_over(canary, native, flight, ends)
    errand = _read(_taken(flight + ERRAND))
    if errand is None or errand["id"].encode() in ends:
        return
    with canary.boundary.on_own_thread():
        if _asks_for_calls(errand):
            answer = _trace(canary, native, flight, errand)
        else:
            answer = {"error": "it does not know this request: it runs another version of loopcanary"}
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
    """The errand; None: the text is not an errand."""
    with suppress(ValueError, RecursionError):
        errand = json.loads(text)
        if isinstance(errand, dict) and isinstance(errand.get("id"), str):
            return errand
    return None


def _leave(flight: str, answer: dict[str, Any]) -> None:
    """Puts the answer where the command looks for it, in one step."""
    path = flight + ANSWER
    with suppress(OSError):  # the command does not get the answer, and says so
        with suppress(FileNotFoundError):
            os.unlink(path + ".new")  # noqa: PTH108
        descriptor = os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(answer, file)
        os.rename(path + ".new", path)  # noqa: PTH104


# ---- calls that are traced for a while (`loopcanary methods`) ------------------------------------


def _asks_for_calls(errand: dict[str, Any]) -> bool:
    """Whether it is about this, and whole."""
    methods, seconds = errand.get("methods"), errand.get("seconds")
    return (
        isinstance(methods, list)
        and all(isinstance(one, str) for one in methods)
        and isinstance(seconds, (int, float))
        and 0 < seconds <= _SECONDS_MAX
    )


def _end_what_is_over(canary: Canary, native: Native, flight: str, ends: list[bytes]) -> None:
    """`ends`: the ids of errands that are."""
    running = canary.calls
    if isinstance(running, AskedCalls) and _is_over(running, ends):
        running.stop()
        native.errand_at(0)
        canary.calls = running.before
        remove_calls(flight)


def _trace(canary: Canary, native: Native, flight: str, errand: dict[str, Any]) -> dict[str, Any]:
    """Begins, if it can; the answer."""
    running = canary.calls
    if running is None or not running.runs:
        return _begun(canary, native, flight, errand)
    if isinstance(running, AskedCalls):
        return {"error": "another command is tracing its methods"}
    return {"already": list(canary.config.methods)}


def _is_over(running: AskedCalls, ends: list[bytes]) -> bool:
    is_ended = running.errand.encode() in ends
    return is_ended or not running.runs or time.monotonic_ns() >= running.until_ns


def _begun(canary: Canary, native: Native, flight: str, errand: dict[str, Any]) -> dict[str, Any]:
    """Traces; the answer says so, or why not."""
    tracer = CallsTracer(native, errand["methods"], canary.config.methods_ring, canary.boundary.tell)
    remove_calls(flight)
    try:
        notice = tracer.start(flight)
    except (CannotTraceError, OSError) as error:
        return {"error": str(error)}
    until_ns = time.monotonic_ns() + int(errand["seconds"] * 1e9)
    canary.calls = AskedCalls(tracer, canary.boundary, errand["id"], until_ns, canary.calls)
    native.errand_at(until_ns)
    return {"notice": notice}
