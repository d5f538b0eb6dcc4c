"""What `loopcanary methods` has a watched program do: chosen calls are traced for a while. An errand."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from loopcanary.engine.calls import AskedCalls
from loopcanary.model.method_map import remove_calls
from loopcanary.tracers.methods.calls_tracer import CallsTracer, CannotTraceError

if TYPE_CHECKING:
    from loopcanary._native import Native
    from loopcanary.engine.canary import Canary

_SECONDS_MAX = 3_600.0


def is_one(errand: dict[str, Any]) -> bool:
    """Whether it is about this, and whole."""
    methods, seconds = errand.get("methods"), errand.get("seconds")
    return (
        isinstance(methods, list)
        and all(isinstance(one, str) for one in methods)
        and isinstance(seconds, (int, float))
        and 0 < seconds <= _SECONDS_MAX
    )


def end_what_is_over(canary: Canary, native: Native, flight: str, ends: list[bytes]) -> None:
    """`ends`: the ids of errands that are."""
    running = canary.calls
    if isinstance(running, AskedCalls) and _is_over(running, ends):
        running.stop()
        native.errand_at(0)
        canary.calls = running.before
        remove_calls(flight)


def run(canary: Canary, native: Native, flight: str, errand: dict[str, Any]) -> dict[str, Any]:
    """Begins, if it can; the answer."""
    running = canary.calls
    if running is None or not running.runs:
        return _begun(canary, native, flight, errand)
    if isinstance(running, AskedCalls):
        return {"error": "its methods are traced for another command"}
    return {"already": list(canary.config.methods)}


def _is_over(running: AskedCalls, ends: list[bytes]) -> bool:
    is_ended = running.errand.encode() in ends
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
    canary.calls = AskedCalls(tracer, canary.boundary, errand["id"], until_ns, canary.calls)
    native.errand_at(until_ns)
    return {"notice": notice}
