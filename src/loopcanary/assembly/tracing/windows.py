"""The tracer of windows, for this process. Loaded where the settings ask for it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from loopcanary import diagnosis
from loopcanary.diagnosis.code.ownership import Owner, Ownership
from loopcanary.diagnosis.code.sources import as_written
from loopcanary.model import Config
from loopcanary.probes import ImportWatch
from loopcanary.tracers.places import culprit_of, identity_of
from loopcanary.tracers.windows.tracer import WindowTracer
from loopcanary.words.windows import window_advice

if TYPE_CHECKING:
    from loopcanary.model import Session
    from loopcanary.model.issues.windows import BlockedWindow


def window_tracer(config: Config) -> WindowTracer:
    """Made, and not yet started."""
    owners = Ownership(diagnosis.CodePaths.capture(), config.concern)
    return WindowTracer(config.windows_ns, lambda file: owners.of(file) is Owner.OWN, ImportWatch)


def fitted(issue: BlockedWindow, session: Session) -> BlockedWindow:
    """With the line that switched it on, as it is written, and what to do. Drain thread."""
    culprit = as_written(culprit_of(issue.switched_on), session.started_wall_ns)
    return replace(issue, culprit=culprit, advice=issue.advice or window_advice(issue))


def identity(issue: BlockedWindow) -> tuple[str, ...]:
    """What was left on, and the function that switched it on."""
    return f"blocked_by={issue.blocked_by}", *identity_of(issue.switched_on)
