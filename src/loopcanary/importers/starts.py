"""Matrix's figures of a start as an issue of the kind startup: kept whether it was slow or not."""

from __future__ import annotations

from dataclasses import replace

from loopcanary.model import Phase, StartKind, Startup
from loopcanary.protocols.imports import SeenStart
from loopcanary.words.android import LOOPER
from loopcanary.words.traced import start_words

_S = 1_000_000_000
_COLD_NS, _WARM_NS = 10 * _S, 4 * _S
"""The original's limits (TraceConfig), which are ours, too."""


def start_of(seen: SeenStart, *, issue_id: str, session: str, began_wall_ns: int) -> Startup:
    """The issue, without its fingerprint."""
    phases, offset_ns = [], 0
    for name, length_ns in seen.stages:
        phases.append(Phase(name=name, offset_ns=offset_ns, duration_ns=length_ns, self_ns=length_ns))
        offset_ns += length_ns
    start = Startup(
        id=issue_id,
        session=session,
        thread="main",
        loop=LOOPER,
        scene=seen.scene,
        began_wall_ns=began_wall_ns,
        duration_ns=seen.duration_ns,
        start=StartKind.WARM if seen.is_warm else StartKind.COLD,
        program=seen.device.process,
        threshold_ns=_WARM_NS if seen.is_warm else _COLD_NS,
        phases=tuple(phases),
    )
    return replace(start, title=start_words(start))
