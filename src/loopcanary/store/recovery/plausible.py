"""What a flight file may say: one flipped bit makes a stall of centuries."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loopcanary.model import StallEvidence
    from loopcanary.store.recovery.forensics import Header

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


def last_ns(found: StallEvidence) -> int:
    """When it was over, or last seen."""
    return found.last_look_ns if found.end_ns is None else found.end_ns
