"""What a running engine is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from loopcanary.protocols.engine import Backend

if TYPE_CHECKING:
    from loopcanary.engine.pipeline import Pipeline
    from loopcanary.model import Clock, LaneTotals, LoopHealth, Session
    from loopcanary.protocols.engine import ScopeListener
    from loopcanary.protocols.plugins import Reporter
    from loopcanary.protocols.stores import Sink


class FileBackend(Backend, Protocol):
    """A backend that may keep a flight file."""

    def set_facts(self, facts: dict[str, Any]) -> bool:
        """Stores the session's facts beside the evidence."""

    def rest(self, patience_s: float) -> bool:
        """Ends its threads; what is open stays open. Before a fork. False where they do not end in time."""

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
        """All that they told was taken."""

    def forget(self) -> None:
        """In a forked child: they are the parent's."""

    def counts(self) -> dict[str, int]:
        """What became of what they told."""


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
