"""The tracers of this process, wired to its engine. Loaded for the first probe that reports frames, input or
idle work."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from loopcanary.assembly import native_module
from loopcanary.engine.canary import Canary
from loopcanary.engine.scopes import current_scene
from loopcanary.registry import REGISTRY
from loopcanary.tracers.frames import FrameListeners
from loopcanary.tracers.tracing import Tracing

if TYPE_CHECKING:
    from loopcanary._native import Native
    from loopcanary.protocols.plugins import Tracer
    from loopcanary.tracers.plugged import PluggedTracers

ISSUES_PER_MINUTE = 30
"""Of each third party's tracer: none uses up what is there for all."""


def tracing_of(canary: Canary) -> Tracing:
    """The canary's, made at the first call."""
    tell = canary.boundary.failed
    with canary.tracing.making:
        if not isinstance(canary.tracing.traces, Tracing):
            canary.tracing.use(
                Tracing(
                    scene=current_scene,
                    listeners=FrameListeners(REGISTRY.frame_listeners, tell),
                    failed=lambda part, error: tell(part, error, keep=True),
                    monotonic_ns=time.monotonic_ns,
                    frames_begin=_frames_begin(),
                    lives=canary.tracing,
                )
            )
        traces = canary.tracing.traces
    assert isinstance(traces, Tracing)
    return traces


def _frames_begin() -> Callable[[], object]:
    """Notes the first frame of the program's start."""
    try:
        return native_module().start_frame
    except ImportError:  # the portable engine records no starts
        return lambda: None


def plugged_tracers(
    canary: Canary,
    native: Native | None,
    makers: dict[str, Callable[[], Tracer]],
    own: dict[str, Callable[[], Tracer]],
) -> PluggedTracers:
    """Tracers, made and not yet started. `makers`: third parties', by the names of their entry points; `own`:
    ours that work in the program."""
    from loopcanary.engine.apart import Apart
    from loopcanary.pipeline.guards import StormGuard
    from loopcanary.tracers.plugged import PluggedTracer, PluggedTracers

    tracing, boundary = tracing_of(canary), canary.boundary
    plugged = []
    for name, make in (makers | own).items():
        part = f"tracer {name}"
        apart = None if name in own else Apart(native, boundary.tell).called
        made = None
        with boundary.until_failure(part) as is_on:
            if is_on:
                made = make() if apart is None else apart(make, part, make)
        if made is not None:
            admits = StormGuard(ISSUES_PER_MINUTE, time.monotonic_ns()).admits
            one = PluggedTracer(
                made,
                tracing.desks.open(name, admits),
                call=boundary.call,
                failed=boundary.failed,
                apart=apart,
                heard=canary.tracing.heard,
                starts=name not in canary.tracing.off,
            )
            plugged.append(one)
            canary.tracing.add(one.life)
    return PluggedTracers(plugged, tracing.desks.leave)
