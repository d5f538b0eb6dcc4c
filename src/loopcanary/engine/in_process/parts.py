"""What a running engine is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from loopcanary.late_dataclass import dataclass
from loopcanary.protocols.engine import Backend

if TYPE_CHECKING:
    from loopcanary.engine.fork_pause import ForkPause
    from loopcanary.engine.in_process.pipeline import Pipeline
    from loopcanary.model import Clock, LagIssue, LaneTotals, LoopHealth, Session, Stall
    from loopcanary.protocols.engine import ScopeListener
    from loopcanary.protocols.plugins import Reporter
    from loopcanary.protocols.stores import Sink


class FileBackend(Backend, Protocol):
    """A backend that may keep a flight file."""

    def set_facts(self, facts: dict[str, Any]) -> bool:
        """Stores the session's facts beside the evidence."""

    def rest(self, patience_s: float) -> int:
        """Ends its threads; what is open stays open. Before a fork. How many ended in time."""

    def go_on(self) -> None:
        """Starts its threads again, or lets them go on. OSError or RuntimeError where the system gives
        none."""

    def discard(self) -> None:
        """Removes the evidence: it has been taken."""

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
        """All that they reported was taken."""

    def forget(self) -> None:
        """In a forked child: they are the parent's."""

    def counts(self) -> dict[str, int]:
        """What became of their reports."""


class Engine(Protocol):
    """One run of an engine. Methods are called under the GIL, on any thread."""

    @property
    def session(self) -> Session:
        """Facts of this process."""

    @property
    def backend(self) -> Any:
        """What sees stalls."""

    def start(self) -> None:
        """Begins to watch. OSError or RuntimeError with the reason why it cannot."""

    def begin(self, stop: Callable[[], None], hand_over: Callable[[], object], /) -> None:
        """All else that a start does. `stop`: what ends the engine before a worker of multiprocessing does;
        `hand_over`: called when this one can begin: the one before lets go. What it raises, nothing of this
        has begun."""

    def give_up(self) -> None:
        """It could not begin, and no other goes on: ends what `start` began."""

    def loop_seen(self) -> None:
        """A loop begins to run."""

    def stalls(self) -> list[Stall]:
        """The last that were reported, oldest first."""

    def loops(self) -> tuple[LoopHealth, ...]:
        """Figures of every watched thread up to now."""

    def statistics(self) -> dict[str, Any]:
        """As `Canary.statistics`."""

    def fork_pause(self) -> ForkPause:
        """A fork is about to be made."""

    def finish(self) -> None:
        """Ends it. The program does not wait for long."""

    def let_go(self) -> None:
        """In a forked child: it is the parent's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineParts:
    """What a running canary is made of; `assembly` makes it."""

    session: Session
    clock: Clock
    backend: FileBackend
    pipeline: Pipeline
    sink: Sink
    reporters: Sequence[Reporter]
    health: Callable[[Sequence[LaneTotals], int], tuple[LoopHealth, ...]]
    facts: Callable[[], dict[str, Any]]
    plugged: Plugged
    recover: Callable[[], object]
    """Takes in what earlier processes left with this store; called once, on the drain thread."""
    start: Callable[[bool], LagIssue | None]
    """Of the process, where it was noted: once it is over; True: it ends now."""
    slow_calls: Callable[[], Sequence[LagIssue]]
    """Those outside of stalls that have ended since they were last asked for."""
