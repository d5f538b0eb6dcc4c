"""Findings, figures of frames and starts of other monitors as issues, each without its fingerprint."""

from __future__ import annotations

from typing import Any

from loopcanary.importers.java import JavaOwnership
from loopcanary.importers.verdicts import culprit_of
from loopcanary.model import ImportedFinding, Jank, Phase, StartKind, Startup, WeightedStack
from loopcanary.model.figures import FrameFigures, interval_ns
from loopcanary.model.units import format_number
from loopcanary.protocols.imports import SeenFinding, SeenFrames, SeenStart
from loopcanary.words.android import LOOPER

_FRAMES_MAX = 200
_COUNT_MAX = 1 << 50


def finding_of(
    seen: SeenFinding, own: JavaOwnership, *, issue_id: str, session: str, began_wall_ns: int
) -> ImportedFinding:
    frames = tuple(own.frame(place) for place in seen.frames[:_FRAMES_MAX])
    truncated = len(seen.frames) > _FRAMES_MAX
    stack = WeightedStack(weight_ns=seen.duration_ns, frames=frames, truncated=truncated)
    stacks = (stack,) if frames else ()
    figures: dict[str, Any] = {name: min(count, _COUNT_MAX) for name, count in seen.figures.items()}
    return ImportedFinding(
        id=issue_id,
        session=session,
        thread=seen.thread,
        loop=LOOPER,
        scene=seen.scene,
        began_wall_ns=began_wall_ns,
        duration_ns=seen.duration_ns,
        culprit=culprit_of(stacks)[0],
        advice=seen.advice,
        stacks=stacks,
        rule=seen.rule,
        at=seen.at,
        **figures,
    )


_REFRESH_HZ = 60


def jank_of(seen: SeenFrames, *, issue_id: str, session: str, began_wall_ns: int) -> Jank:
    refresh_mhz = (seen.refresh_hz or _REFRESH_HZ) * 1_000
    one_ns = interval_ns(refresh_mhz)
    frames, dropped = sum(seen.drop_level), sum(seen.drop_sum)
    frame_ns = (frames + dropped) * one_ns
    figures = FrameFigures(
        refresh_mhz=refresh_mhz,
        frames=frames,
        frame_ns=frame_ns,
        drop_level=seen.drop_level,
        drop_sum=seen.drop_sum,
        late_ns=dropped * one_ns,
        janky_ns=sum(seen.drop_sum[1:]) * one_ns,
        frozen=seen.drop_level[-1],
        worst_ns=_worst(seen) * one_ns,
    )
    said = "" if seen.fps is None else f" (Matrix says {format_number(seen.fps)})"
    return Jank(
        id=issue_id,
        fingerprint="",
        session=session,
        pid=0,
        thread="main",
        loop=LOOPER,
        title=f"{format_number(figures.fps)} frames a second{said}, {dropped:,} dropped",
        scene=seen.scene,
        began_wall_ns=began_wall_ns,
        duration_ns=frame_ns,
        figures=figures,
        worst=(),
    )


def _worst(seen: SeenFrames) -> int:
    """Intervals that the longest frame took at least: the average of the worst level."""
    for count, dropped in zip(reversed(seen.drop_level), reversed(seen.drop_sum), strict=True):
        if count:
            return -(-dropped // count) + 1
    return 0


_S = 1_000_000_000
_COLD_NS, _WARM_NS = 10 * _S, 4 * _S
"""The limits of the original (TraceConfig)."""


def start_of(seen: SeenStart, *, issue_id: str, session: str, began_wall_ns: int) -> Startup:
    phases, offset_ns = [], 0
    for name, length_ns in seen.stages:
        phases.append(Phase(name=name, offset_ns=offset_ns, duration_ns=length_ns, self_ns=length_ns))
        offset_ns += length_ns
    return Startup(
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
