"""What the verdict on an issue rests on, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopcanary.model.figures.frames import FROZEN_NS, HITCH_RATIO_MAX
from loopcanary.model.figures.lags import IDLE_LAG_NS, SPIN_NS
from loopcanary.model.issues.slow_method import KEY_SHARE
from loopcanary.model.units import format_duration, format_number
from loopcanary.registry import issue_kind, said_of
from loopcanary.words.text import count_of, printable
from loopcanary.words.traced import phase_words
from loopcanary.words.waiting import share_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loopcanary.model.issues.issue import Issue
    from loopcanary.model.issues.lags import IdleLag, InputLag, Jank
    from loopcanary.model.issues.slow_method import SlowMethod
    from loopcanary.model.issues.startup import Startup
    from loopcanary.model.stall import Stall

_NO_STALL = "no stall was seen on its thread meanwhile: nothing that ran was as long as the threshold"
_S_NS = 1_000_000_000
_MS_NS = 1_000_000


def evidence_of(issue: Issue) -> tuple[str, ...]:
    """Its figures against the limits, and what was seen of the thread meanwhile."""
    own = tuple(said_of(issue, "evidence") or ())
    if not issue.stalls or issue_kind(issue.kind.value).place:
        return own  # it says itself what they are to it
    return (*own, _meanwhile(issue))


def of_stall(stall: Stall) -> tuple[str, ...]:
    """What its samples show."""
    return stall.evidence


def of_start(start: Startup) -> Iterator[str]:
    """Its length against the limit, and the longest phase."""
    took = format_duration(start.duration_ns)
    limit = f"; the limit is {format_duration(start.threshold_ns)}" if start.threshold_ns else ""
    slowest, most = start.slowest, ""
    if slowest is not None and start.duration_ns > 0:
        share, own = slowest.self_ns / start.duration_ns, format_duration(slowest.self_ns)
        most = f"; {phase_words(slowest)} has the largest own time: {own} ({share_words(share)})"
    yield f"{took}{limit}{most}"
    if start.left_out:
        yield f"{count_of(start.left_out, 'short phase')} left out"


def of_method(slow: SlowMethod) -> Iterator[str]:
    """Its length against the limit, and the longest call."""
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


def of_jank(jank: Jank) -> Iterator[str]:
    """Late and frozen frames against the limits."""
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
    if jank.stalls:
        guilty = sum(1 for frame in jank.worst if frame.stalls)
        yield f"{_meanwhile(jank)}, in {guilty} of its {count_of(len(jank.worst), 'worst frame')}"
    else:
        yield _NO_STALL


def of_input(lag: InputLag) -> Iterator[str]:
    """How long the event waited, and how long its handling took."""
    handling = format_duration(max(0, lag.duration_ns - lag.queued_ns))
    share = share_words(lag.queued_ns / lag.duration_ns if lag.duration_ns else 0.0)
    took, waited = format_duration(lag.duration_ns), format_duration(lag.queued_ns)
    yield f"of {took} the event waited {waited} ({share}) for the loop; handling took {handling}"
    yield _of_stalls(lag)


def of_idle(lag: IdleLag) -> Iterator[str]:
    """Rounds and their length, or the length of one run, and the limit."""
    took = format_duration(lag.duration_ns)
    if lag.runs > 1:
        each = format_duration(lag.duration_ns // lag.runs)
        yield (
            f"{lag.runs:,} rounds in {took}, {each} each, and the loop never waited between them; "
            f"the limit is {format_duration(SPIN_NS)}"
        )
    else:
        yield f"one call took {took}; the limit is {format_duration(IDLE_LAG_NS)}"
    yield _of_stalls(lag)


def _of_stalls(lag: InputLag | IdleLag) -> str:
    if not lag.stalls:
        return _NO_STALL
    return f"{_meanwhile(lag)}; cause and place are those of the one that held most of it"


def _meanwhile(issue: Issue) -> str:
    return f"{count_of(len(issue.stalls), 'stall')} on its thread meanwhile"
