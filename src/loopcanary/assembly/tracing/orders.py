"""The tracer of lock orders, for this process. Loaded where the settings ask for it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from loopcanary import diagnosis
from loopcanary.diagnosis.code.ownership import Owner, Ownership
from loopcanary.diagnosis.code.sources import as_written
from loopcanary.model import Config
from loopcanary.tracers.orders import fitting
from loopcanary.tracers.orders.tracer import OrderTracer

if TYPE_CHECKING:
    from loopcanary._native import Native
    from loopcanary.model import Session
    from loopcanary.model.issues.lock_orders import LockOrder


def order_tracer(config: Config, native: Native) -> OrderTracer:
    """Made, and not yet started."""
    owners = Ownership(diagnosis.CodePaths.capture(), config.concern)
    return OrderTracer(native, lambda file: owners.of(file) is Owner.OWN)


def fitted(issue: LockOrder, session: Session) -> LockOrder:
    """With the line to change, as it is written. Drain thread."""
    issue = fitting.fitted(issue, session)
    return replace(issue, culprit=as_written(issue.culprit, session.started_wall_ns))
