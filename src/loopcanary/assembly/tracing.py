"""The tracers of this process, wired to its engine. Loaded for the first probe that tells of frames, input or
idle work."""

from __future__ import annotations

import time

from loopcanary.engine.canary import Canary
from loopcanary.engine.scopes import SCENE
from loopcanary.registry import REGISTRY
from loopcanary.tracers.frames_listeners import FrameListeners
from loopcanary.tracers.tracing import Tracing


def tracing_of(canary: Canary) -> Tracing:
    """The canary's, made at the first call."""
    if not isinstance(canary.traces, Tracing):
        tell = canary.boundary.failed
        canary.trace_with(
            Tracing(
                scene=SCENE.get,
                listeners=FrameListeners(REGISTRY.frame_listeners, tell),
                failed=lambda part, error: tell(part, error, keep=True),
                monotonic_ns=time.monotonic_ns,
            )
        )
    traces = canary.traces
    assert isinstance(traces, Tracing)
    return traces
