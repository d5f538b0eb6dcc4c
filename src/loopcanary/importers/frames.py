"""Matrix's figures of frames as an issue of frames.

Its rate differs between its versions, so that the drop levels say more: from them come how late frames were.
"""

from __future__ import annotations

from loopcanary.model import Jank
from loopcanary.model.figures.frames import FrameFigures, interval_ns
from loopcanary.model.units import format_number
from loopcanary.protocols.imports import SeenFrames
from loopcanary.words.android import LOOPER

_REFRESH_HZ = 60


def jank_of(seen: SeenFrames, *, issue_id: str, session: str, began_wall_ns: int) -> Jank:
    """The issue, without its fingerprint."""
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
    """How many intervals the longest frame took at least: as many as those of the worst level on average."""
    for count, dropped in zip(reversed(seen.drop_level), reversed(seen.drop_sum), strict=True):
        if count:
            return -(-dropped // count) + 1
    return 0
