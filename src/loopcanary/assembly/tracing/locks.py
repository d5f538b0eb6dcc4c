"""The tracer of locks, for this process. Loaded where the settings ask for it."""

from __future__ import annotations

from loopcanary import diagnosis
from loopcanary.diagnosis.code.ownership import Owner, Ownership
from loopcanary.model import Config
from loopcanary.probes import ImportWatch
from loopcanary.tracers.locks.tracer import LockTracer


def lock_tracer(config: Config) -> LockTracer:
    """Made, and not yet started."""
    owners = Ownership(diagnosis.CodePaths.capture(), config.concern)
    return LockTracer(lambda file: owners.of(file) is Owner.OWN, ImportWatch)
