"""Tasks that wait for each other for ever, and locks that nothing will release (the leaked sync barrier,
behind which a thread looks idle)."""

from __future__ import annotations

from dataclasses import field

from loopcanary.late_dataclass import dataclass
from loopcanary.model.issues.facts import ReportedFacts
from loopcanary.model.issues.kind import IssueKind
from loopcanary.model.spelling import spelled
from loopcanary.model.stack_frame import StackFrame

WAITERS_MAX = 20
"""The waiting tasks that are kept, the first in line first; `waiting` counts all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskWait:
    """A task that waits, or a thread that works for one."""

    task: str
    """Its name."""
    waits_for: str
    """`Lock 'Bank.accounts'`, `the task Task-7`, `the thread asyncio_0`, `an item in Queue 'jobs'`."""
    is_thread: bool = False
    """A thread that works for a task, and no task."""
    holds: str | None = None
    """What it holds, for which another one of a cycle waits; None: nothing, or it is waited for as a task."""
    made: tuple[StackFrame, ...] = ()
    """Where what it holds was made, innermost first: constructors, and who called them. Empty: not known."""
    taken: StackFrame | None = None
    """Where it acquired it; None: not known."""
    frames: tuple[StackFrame, ...] = ()
    """Where it waits, innermost first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlock(ReportedFacts):
    """Each task of a cycle waits for the next one, and the last for the first."""

    kind = IssueKind.DEADLOCK
    cycle: tuple[TaskWait, ...] = ()
    """In the order in which they wait; begins with the task whose name sorts first."""
    waiting: int = 0
    """Other tasks that can go on only when one of these does."""

    @property
    def searched(self) -> tuple[str, ...]:
        return tuple(one for wait in self.cycle for one in (wait.task, wait.waits_for))


@dataclass(frozen=True, slots=True, kw_only=True)
class LockLeak(ReportedFacts):
    """A lock whose holder has ended, or has lost it, without a release."""

    kind = IssueKind("lock-leak")
    primitive: str = ""
    """`Lock 'Cache.lock'`."""
    acquired_by: str = field(default="", metadata=spelled(name="holder"))
    """The name of the task that acquired it."""
    has_ended: bool = True
    """The holder; False: it waits for the lock itself."""
    made: tuple[StackFrame, ...] = ()
    """Where the lock was made; as that of a wait."""
    acquired: tuple[StackFrame, ...] = ()
    """Where it was acquired, innermost first."""
    waiters: tuple[TaskWait, ...] = ()
    waiting: int = 0
    """How many tasks wait for it."""

    @property
    def searched(self) -> tuple[str, ...]:
        return (self.primitive, self.acquired_by, *(wait.task for wait in self.waiters))
