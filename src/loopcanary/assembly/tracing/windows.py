"""The tracer of windows, for this process. Loaded where the settings ask for it."""

from __future__ import annotations

from loopcanary import diagnosis
from loopcanary.diagnosis.code.ownership import Owner, Ownership
from loopcanary.model import Config
from loopcanary.probes import ImportWatch
from loopcanary.tracers.windows.tracer import WindowTracer


def window_tracer(config: Config) -> WindowTracer:
    """Made, and not yet started."""
    owners = Ownership(diagnosis.CodePaths.capture(), config.concern)
    return WindowTracer(config.windows_ns, lambda file: owners.of(file) is Owner.OWN, ImportWatch)
