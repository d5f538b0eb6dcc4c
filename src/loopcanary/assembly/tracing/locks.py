"""The tracer of locks, for this process. Loaded where the settings ask for it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from loopcanary import diagnosis
from loopcanary.diagnosis.code.ownership import Owner, Ownership
from loopcanary.diagnosis.code.sources import as_written
from loopcanary.model import Config
from loopcanary.probes import ImportWatch
from loopcanary.tracers.locks import fitting
from loopcanary.tracers.locks.tracer import LockTracer

if TYPE_CHECKING:
    from loopcanary.model import Session
    from loopcanary.model.issues.locks import Deadlock, LockLeak


def lock_tracer(config: Config) -> LockTracer:
    """Made, and not yet started."""
    owners = Ownership(diagnosis.CodePaths.capture(), config.concern)
    return LockTracer(lambda file: owners.of(file) is Owner.OWN, ImportWatch)


def fitted_deadlock(issue: Deadlock, session: Session) -> Deadlock:
    """With the line to change, as it is written. Drain thread."""
    issue = fitting.fitted_deadlock(issue, session)
    return replace(issue, culprit=as_written(issue.culprit, session.started_wall_ns))


def fitted_leak(issue: LockLeak, session: Session) -> LockLeak:
    """As fitted_deadlock."""
    issue = fitting.fitted_leak(issue, session)
    return replace(issue, culprit=as_written(issue.culprit, session.started_wall_ns))
