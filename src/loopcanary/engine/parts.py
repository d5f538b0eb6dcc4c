"""What a running engine is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from loopcanary.late_dataclass import dataclass
from loopcanary.protocols.engine import Backend

if TYPE_CHECKING:
    from loopcanary.model import Clock, LagIssue, LaneTotals, LoopHealth, Session
    from loopcanary.pipeline.pipeline import Pipeline
    from loopcanary.protocols.engine import ScopeListener
    from loopcanary.protocols.plugins import Reporter
    from loopcanary.protocols.stores import Sink


class FileBackend(Backend, Protocol):
    """A backend that may keep a flight file."""

    file: str | None
    """Its path, or that of the hangs that are left behind; None: nothing is."""

    def set_facts(self, facts: dict[str, Any]) -> bool:
        """Stores the session's facts beside the evidence."""

    def rest(self, patience_s: float) -> int:
        """Ends its threads; what is open stays open. Before a fork. How many ended in time."""

    def go_on(self) -> None:
        """Starts its threads again, or lets them go on. OSError or RuntimeError where the system gives
        none."""

    def discard(self) -> None:
        """Removes the evidence: it is stored."""

    def let_go(self) -> None:
        """Leaves the evidence to another process."""

    @property
    def listener(self) -> ScopeListener:
        """Gets scenes and work from `scopes`."""


class Plugged(Protocol):
    """Third parties' tracers. Nothing is raised."""

    def start(self) -> None:
        """The engine runs. The thread that starts it."""

    def stop(self) -> None:
        """It is about to end. The drain's last work."""

    def close(self) -> None:
        """All that they reported is stored."""

    def forget(self) -> None:
        """In a forked child: they are the parent's."""

    def counts(self) -> dict[str, int]:
        """What became of their reports."""


class NotificationSender(Protocol):
    """Sends notifications, on threads of its own."""

    def look(self, now_ns: int) -> int | None:
        """Sends what is due. When to look again; None: when something is reported. The drain."""

    def rest(self, patience_s: float) -> None:
        """Waits for the threads that send. Before a fork."""

    def end(self, patience_s: float) -> None:
        """Delivers what is left, for this time at most by each way. The drain's last work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineParts:
    """What the drain judges with; `assembly` makes it."""

    session: Session
    clock: Clock
    pipeline: Pipeline
    sink: Sink
    reporters: Sequence[Reporter]
    health: Callable[[Sequence[LaneTotals], int], tuple[LoopHealth, ...]]
    recover: Callable[[], object]
    """Stores what earlier processes left with this store; called once."""
    start: Callable[[bool], LagIssue | None]
    """The start of the process, where it was noted, once it is over; True: it ends now."""
    beside_stalls: Callable[[], Sequence[LagIssue]]
    """Slow calls outside of stalls that have ended since they were last asked for, and deadlocks of tasks."""
    notifier: NotificationSender | None
    """None where the settings ask for no notifications."""
