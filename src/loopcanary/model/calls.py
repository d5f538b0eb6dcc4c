"""The calls that were traced in a stall, as a tree in one list: each row before those inside it."""

from __future__ import annotations

from dataclasses import dataclass, field

from loopcanary.model.spelling import spelled
from loopcanary.model.stack_frame import StackFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedCall:
    """Calls of one function by one path. Exact: its thread noted each."""

    frame: StackFrame = field(metadata=spelled(flat=True))
    """The function; `line`: where it begins, 0 unknown."""
    depth: int
    """How many rows it is inside of."""
    calls: int
    total_ns: int
    """Within the stall: of calls that began before it, from its begin on."""
    self_ns: int
    """Without the traced calls inside it."""
    open: bool = False
    """One of the calls had not returned when the stall, or its record, ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedCalls:
    """What one thread called in a stall."""

    rows: tuple[TracedCall, ...] = ()
    """Outermost first."""
    lost: int = 0
    """At least so many begins and ends of calls in the stall were overwritten before they were read."""
    left_out: int = 0
    """How many shorter rows are not among `rows`."""
    left_out_ns: int = 0
    """What these took by themselves."""
