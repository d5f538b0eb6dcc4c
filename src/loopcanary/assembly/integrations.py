"""The integrations, put together: loaded in every watched program, so that it brings little."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from loopcanary.engine import scopes
from loopcanary.engine.canary import Canary
from loopcanary.integrations.installed import Integrations
from loopcanary.integrations.telling import Telling
from loopcanary.probes.on_import import ImportWatch
from loopcanary.protocols.tracing import Tracers

if TYPE_CHECKING:
    from loopcanary._native import Native


def _tracers(canary: Canary) -> Tracers:
    from loopcanary.assembly.tracers import tracing_of

    return tracing_of(canary)


def integrations(canary: Canary, native: Native | None) -> Integrations:
    """All of them, not yet installed."""
    tell = Telling(
        scopes,
        canary.loop_seen,
        lambda: _tracers(canary),
        request_threshold_ns=canary.config.request_threshold_ns,
        task_threshold_ns=canary.config.task_threshold_ns,
        ends=canary.stop,
        answers_elsewhere=None if native is None else native.answers_elsewhere,
    )

    def contain(part: str, patch: Callable[[], Any]) -> None:
        canary.boundary.call(part, patch)

    return Integrations(tell, ImportWatch, contain)
