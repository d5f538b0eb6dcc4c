"""What the verdict on an issue that is no stall rests on, in sentences. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopcanary.model.figures.frames import FROZEN_NS, HITCH_RATIO_MAX
from loopcanary.model.figures.lags import IDLE_LAG_NS, SPIN_NS
from loopcanary.model.issues.lags import IdleLag, InputLag, Jank
from loopcanary.model.issues.slow_method import KEY_SHARE, SlowMethod
from loopcanary.model.issues.startup import Startup
from loopcanary.model.units import format_duration, format_number
from loopcanary.words.text import count_of, printable
from loopcanary.words.traced import phase_words
from loopcanary.words.waiting import share_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loopcanary.model.issues.issue import LagIssue

_S_NS = 1_000_000_000
_MS_NS = 1_000_000


def evidence_of(issue: LagIssue) -> tuple[str, ...]:
    """Its figures against the limits, and what was seen of the thread meanwhile."""
    match issue:
        case Jank():
            return (*_of_jank(issue), _of_stalls(issue))
        case Startup():
            return (*_of_start(issue), *([_of_stalls(issue)] if issue.stalls else []))
        case SlowMethod():
            return (*_of_method(issue), *([_of_stalls(issue)] if issue.stalls else []))
        case _:
            return (*_of_lag(issue), _of_stalls(issue))


def _of_start(start: Startup) -> Iterator[str]:
    took, limit = format_duration(start.duration_ns), format_duration(start.threshold_ns)
    yield f"{took}; the limit is {limit}"
    slowest = start.slowest
    if slowest is not None and start.duration_ns > 0:
        share = slowest.self_ns / start.duration_ns
        own = format_duration(slowest.self_ns)
        yield f"{phase_words(slowest)} has the largest own time: {own} ({share_words(share)})"
    if start.left_out:
        yield f"{count_of(start.left_out, 'short phase')} left out"


def _of_method(slow: SlowMethod) -> Iterator[str]:
    took, limit = format_duration(slow.duration_ns), format_duration(slow.threshold_ns)
    yield f"{took}; the limit is {limit}"
    key = slow.key_row
    if key is not None and slow.duration_ns > 0:
        share = key.total_ns / slow.duration_ns
        name = printable(key.frame.qualname, 120)
        enough = "" if share >= KEY_SHARE else f"; no call took {share_words(KEY_SHARE)}"
        yield f"{name} took {share_words(share)} of the time in {count_of(key.count, 'call')}{enough}"
    if slow.left_out:
        own = format_duration(slow.left_out_ns)
        yield f"{count_of(slow.left_out, 'short row')} left out, {own} in all by themselves"


def _of_jank(jank: Jank) -> Iterator[str]:
    figures = jank.figures
    late = sum(figures.drop_level[1:])
    if late and figures.frame_ns:
        per_second = _S_NS * figures.janky_ns / figures.frame_ns / _MS_NS
        limit = format_number(HITCH_RATIO_MAX)
        yield (
            f"{late:,} of {count_of(figures.frames, 'frame')} dropped three and more: "
            f"{format_number(per_second)} ms late in each second; the limit is {limit} ms"
        )
    if figures.frozen:
        yield f"{count_of(figures.frozen, 'frame')} took more than {format_duration(FROZEN_NS)}"


def _of_lag(lag: InputLag | IdleLag) -> Iterator[str]:
    took = format_duration(lag.duration_ns)
    if isinstance(lag, InputLag):
        handling = format_duration(max(0, lag.duration_ns - lag.queued_ns))
        share = share_words(lag.queued_ns / lag.duration_ns if lag.duration_ns else 0.0)
        yield (
            f"of {took} the event waited {format_duration(lag.queued_ns)} ({share}) for the loop; "
            f"handling took {handling}"
        )
    elif lag.runs > 1:
        each = format_duration(lag.duration_ns // lag.runs)
        yield (
            f"{lag.runs:,} rounds in {took}, {each} each, and the loop never waited between them; "
            f"the limit is {format_duration(SPIN_NS)}"
        )
    else:
        yield f"one call took {took}; the limit is {format_duration(IDLE_LAG_NS)}"


def _of_stalls(issue: LagIssue) -> str:
    if not issue.stalls:
        return "no stall was seen on its thread meanwhile: nothing that ran was as long as the threshold"
    found = count_of(len(issue.stalls), "stall")
    if isinstance(issue, (Startup, SlowMethod)):
        return f"{found} on its thread meanwhile"  # cause and place may be the tracer's own
    if not isinstance(issue, Jank):
        return f"{found} on its thread meanwhile; cause and place are those of the one that held most of it"
    guilty = sum(1 for frame in issue.worst if frame.stalls)
    frames = "its worst frame" if len(issue.worst) == 1 else f"its {len(issue.worst)} worst frames"
    return f"{found} on its thread meanwhile, in {guilty} of {frames}"
