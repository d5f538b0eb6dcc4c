"""What the verdict on jank, late input or long idle work rests on, in sentences. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopcanary.model.frames import FROZEN_NS, HITCH_RATIO_MAX
from loopcanary.model.lag_issues import IdleLag, InputLag, Jank
from loopcanary.model.lags import IDLE_LAG_NS, SPIN_NS
from loopcanary.model.units import format_duration, format_number
from loopcanary.model.wording import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loopcanary.model.issue import LagIssue

_S_NS = 1_000_000_000
_MS_NS = 1_000_000


def evidence_of(issue: LagIssue) -> tuple[str, ...]:
    """Its figures against the limits, and what was seen of the thread meanwhile."""
    own = _of_jank(issue) if isinstance(issue, Jank) else _of_lag(issue)
    return (*own, _of_stalls(issue))


def _of_jank(jank: Jank) -> Iterator[str]:
    figures = jank.figures
    late = sum(figures.drop_level[1:])
    if late and figures.frame_ns:
        per_second = _S_NS * figures.janky_ns / figures.frame_ns / _MS_NS
        limit = format_number(HITCH_RATIO_MAX)
        yield (
            f"{late:,} of {count_of(figures.frames, 'frame')} dropped three and more: "
            f"{format_number(per_second)} ms late in each second, and more than {limit} is jank"
        )
    if figures.frozen:
        yield f"{count_of(figures.frozen, 'frame')} took more than {format_duration(FROZEN_NS)}"


def _of_lag(lag: InputLag | IdleLag) -> Iterator[str]:
    took = format_duration(lag.duration_ns)
    if isinstance(lag, InputLag):
        handling = format_duration(max(0, lag.duration_ns - lag.queued_ns))
        share = lag.queued_ns / lag.duration_ns if lag.duration_ns else 0.0
        yield (
            f"of {took} it waited {format_duration(lag.queued_ns)} ({share:.0%}) for the loop; "
            f"{handling} were its handling"
        )
    elif lag.runs > 1:
        each = format_duration(lag.duration_ns // lag.runs)
        yield (
            f"{lag.runs:,} rounds in {took}, {each} each, and the loop never waited between them; "
            f"more than {format_duration(SPIN_NS)} of that is an issue"
        )
    else:
        yield f"one run took {took}; more than {format_duration(IDLE_LAG_NS)} is an issue"


def _of_stalls(issue: LagIssue) -> str:
    if not issue.stalls:
        return "no stall was seen on its thread meanwhile: nothing that ran was as long as the threshold"
    found = count_of(len(issue.stalls), "stall")
    if not isinstance(issue, Jank):
        return f"{found} on its thread meanwhile; cause and place are those of the one that held most of it"
    guilty = sum(1 for frame in issue.worst if frame.stalls)
    frames = "its worst frame" if len(issue.worst) == 1 else f"its {len(issue.worst)} worst frames"
    return f"{found} on its thread meanwhile, in {guilty} of {frames}"
