"""The tracers of locks and of windows, for this process. Loaded where the settings ask for one."""

from __future__ import annotations

from collections.abc import Callable

from loopcanary import diagnosis
from loopcanary.diagnosis.code.ownership import Owner, Ownership
from loopcanary.model import Config
from loopcanary.probes import ImportWatch
from loopcanary.protocols.plugins import Tracer


def lock_tracer(config: Config) -> Tracer:
    from loopcanary.tracers.locks.tracer import LockTracer

    return LockTracer(_owns(config), ImportWatch)


def window_tracer(config: Config) -> Tracer:
    from loopcanary.tracers.windows.tracer import WindowTracer

    return WindowTracer(config.windows_ns, _owns(config), ImportWatch)


def _owns(config: Config) -> Callable[[str], bool]:
    owners = Ownership(diagnosis.CodePaths.capture(), config.concern)
    return lambda file: owners.of(file) is Owner.OWN
