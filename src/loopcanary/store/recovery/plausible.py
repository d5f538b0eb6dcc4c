"""What a flight file may say: one flipped bit makes a stall of centuries."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from loopcanary.model import StallScope

if TYPE_CHECKING:
    from loopcanary.model import Fault, LaneTotals, StallEvidence
    from loopcanary.store.recovery.forensics import Header

_DAY_NS = 86_400_000_000_000
"""The wall clock may have been set by so much."""
_TIMES = (
    *("busy_ns", "callback_ns", "gc_ns", "longest_turn_ns"),
    *("on_cpu_ns", "queue_ns_max", "run_queue_ns", "stalled_ns"),
)
_LATE_NS = 60_000_000_000
"""The watchdog, whose look is the last sign of life, may have been kept from looking by so much."""


def credible(header: Header, found: StallEvidence) -> StallEvidence | None:
    """The stall; one longer than its process as long as its samples show it; None where they show nothing."""
    last_sign_ns = max(header.heartbeat_ns, header.ended_ns or 0)
    longest_ns = max(last_sign_ns - header.started_ns, 0) + _LATE_NS
    if last_ns(found) - found.begin_ns <= longest_ns:
        return found
    if not found.samples or found.samples[-1].at_ns - found.samples[0].at_ns > longest_ns:
        return None
    begin_ns, end_ns = found.samples[0].at_ns, found.samples[-1].at_ns
    return replace(
        found, begin_ns=begin_ns, end_ns=None if found.end_ns is None else end_ns, last_look_ns=end_ns
    )


def latest_ns(header: Header, now_wall_ns: int) -> int:
    """The last instant, by the process's clock, at which it may have lived: what lies beyond is damage."""
    return header.clock.monotonic_ns + now_wall_ns - header.clock.wall_ns + _DAY_NS


def credible_lane(header: Header, lane: LaneTotals, now_wall_ns: int) -> LaneTotals:
    """The lane; no time of it longer than its process may have lived."""
    latest = latest_ns(header, now_wall_ns)
    started = header.started_ns if header.started_ns <= latest else 0
    times = {name: getattr(lane, name) for name in _TIMES}
    return replace(
        lane,
        opened_ns=max(started, min(lane.opened_ns, latest)),
        **{name: min(time, latest - started) for name, time in times.items() if time is not None},
    )


def last_ns(found: StallEvidence) -> int:
    """When it was over, or last seen."""
    return found.last_look_ns if found.end_ns is None else found.end_ns


def ended_by(found: StallEvidence, end_ns: int) -> StallEvidence:
    """A stall in which the process ended by its own will ended with it."""
    return replace(found, end_ns=max(found.begin_ns, end_ns)) if found.end_ns is None else found


def was_end(header: Header, found: StallEvidence) -> bool:
    """Whether a fault that came in no turn ended the process, which may survive one; of all else, yes."""
    return found.scope is not StallScope.THREAD or header.fault_of(found.tid, found.begin_ns) is not None


def at_its_end(found: StallEvidence, fault: Fault) -> StallEvidence:
    """Of a crash: only the last look at the thread. What it did before is not what ended the process."""
    seen = [sample for sample in found.samples if sample.stack is not None]
    return replace(found, fault=fault, samples=tuple(seen[-1:]) or found.samples)
