"""Traced calls, in a stall or for a while: as a tree in one list, each row before those inside it."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from loopcanary.late_dataclass import dataclass
from loopcanary.model.spelling import spelled
from loopcanary.model.stack_frame import StackFrame

if TYPE_CHECKING:
    from loopcanary.model.session import Session


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
class TracedWork:
    """What a callback of a loop, or all steps of a task, called."""

    name: str
    """Of its function; empty: outside of callbacks, and of those that have no row here."""
    task: str | None = None
    """As the program has named it; None: it has not."""
    times: int
    """How many pieces of it called a traced function."""
    total_ns: int
    """Of the calls that it began."""


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
    work: tuple[TracedWork, ...] = ()
    """The same calls by the work that they belong to, the longest first. Empty: a loop ran none of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedCall:
    """One call by itself."""

    begin_ns: int
    """From the begin of the record."""
    length_ns: int
    frame: StackFrame
    """The function."""
    is_open: bool = False
    """It had not returned at the end of the record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadCalls:
    """What one thread called while `loopcanary methods` had its calls traced."""

    tid: int
    """As the kernel numbers it in its own namespace."""
    thread: str
    loop: str
    """Kind of its loop; empty: it has none."""
    calls: TracedCalls
    each: tuple[TimedCall, ...] = ()
    """The same one by one, each before those inside it, where that was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What a running program called in a while."""

    session: Session
    began_wall_ns: int
    duration_ns: int
    threads: tuple[ThreadCalls, ...]
    """Those that were traced and called something."""
    notices: tuple[str, ...] = ()
    """What the program says to it, for people."""
