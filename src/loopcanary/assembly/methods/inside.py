"""What `loopcanary methods` has a watched program do: chosen calls are traced for a while.

On a thread of ours, with the canary's lock held: no stop and no fork comes between. An errand is a file
beside the flight file, taken away when it is read. It is another process's: nothing in it is trusted.
"""

from __future__ import annotations

import json
import os
import stat
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from loopcanary.engine.calls import AskedCalls
from loopcanary.model.method_map import ANSWER, ERRAND, remove_calls
from loopcanary.tracers.methods.calls_tracer import CallsTracer, CannotTraceError

if TYPE_CHECKING:
    from loopcanary._native import Native
    from loopcanary.engine.canary import Canary

_BYTES_MAX = 1 << 16
_SECONDS_MAX = 3_600.0
_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


def run_errand(canary: Canary, native: Native) -> None:
    """Begins or ends what a command wants; ends what has taken longer than it wanted."""
    flight = getattr(canary.backend, "file", None)
    if flight is None:
        return
    errand, running = _taken(flight), canary.calls
    if isinstance(running, AskedCalls) and _is_over(running, errand):
        running.stop()
        native.errand_at(0)
        canary.calls = running = None
        remove_calls(flight)
    if errand is None or errand.get("ends"):
        return
    if running is None:
        answer = _begun(canary, native, flight, errand)
    elif isinstance(running, AskedCalls):
        answer = {"error": "its methods are traced for another command"}
    else:
        answer = {"already": list(canary.config.methods)}
    _leave(flight, {"id": errand["id"], **answer})


def _is_over(running: AskedCalls, errand: dict[str, Any] | None) -> bool:
    is_ended = errand is not None and errand.get("ends") and errand["id"] == running.errand
    return is_ended or not running.runs or time.monotonic_ns() >= running.until_ns


def _begun(canary: Canary, native: Native, flight: str, errand: dict[str, Any]) -> dict[str, Any]:
    """Traces; the answer says so, or why not."""
    tracer = CallsTracer(native, errand["methods"], canary.config.methods_ring)
    remove_calls(flight)
    try:
        notice = tracer.start(flight)
    except (CannotTraceError, OSError) as error:
        return {"error": str(error)}
    until_ns = time.monotonic_ns() + int(errand["seconds"] * 1e9)
    canary.calls = AskedCalls(tracer, canary.boundary, errand["id"], until_ns)
    native.errand_at(until_ns)
    return {"notice": notice}


def _taken(flight: str) -> dict[str, Any] | None:
    """The errand that is there, which is then no more."""
    path = flight + ERRAND
    with suppress(OSError, ValueError, RecursionError):
        descriptor = os.open(path, os.O_RDONLY | _FLAGS)
        try:
            facts = os.fstat(descriptor)
            is_ours = stat.S_ISREG(facts.st_mode) and facts.st_uid == os.geteuid()
            text = os.read(descriptor, _BYTES_MAX) if is_ours else b""
        finally:
            os.close(descriptor)
        os.unlink(path)  # noqa: PTH108 - pathlib need not be loaded here
        errand = json.loads(text)
        if _is_whole(errand):
            return errand  # type: ignore[no-any-return]
    return None


def _is_whole(errand: Any) -> bool:
    if not isinstance(errand, dict) or not isinstance(errand.get("id"), str):
        return False
    methods, seconds = errand.get("methods"), errand.get("seconds")
    return bool(errand.get("ends")) or (
        isinstance(methods, list)
        and all(isinstance(one, str) for one in methods)
        and isinstance(seconds, (int, float))
        and 0 < seconds <= _SECONDS_MAX
    )


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
