"""A suspended task as the search for deadlocks sees it, and how a kind of loop is asked for its tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from loopcanary.tracers.locks.primitives import Primitive


@dataclass(frozen=True, slots=True)
class TaskView:
    """A task of the loop, suspended."""

    task: Any
    name: str
    coroutine: Any
    """The outermost."""
    mark: Any
    """Of its wait: the same object while it has not run. None: it is ready to run."""
    lock: Primitive | None
    """What it waits for."""
    tasks: tuple[Any, ...]
    """Tasks and futures all of which have to end before it goes on; those that have not ended."""
    keys: tuple[Any, ...]
    """Objects by which any task that knows one may end this wait: a nursery, its scope, a `task_status`."""
    holds: tuple[Primitive, ...]
    """What it has entered by `async with`, the outermost first."""


class LoopTasks(Protocol):
    """The tasks of one loop. Its own thread only. Nothing of the program's is called."""

    kind: str
    """As lanes call the loop."""

    def call_later(self, seconds: float, call: Callable[[], object]) -> None:
        """Has the loop call it, which raises nothing. 0: with its next turn."""

    def all(self) -> Iterable[Any]:
        """Those that have not ended."""

    def view(self, task: Any) -> TaskView:
        """Of one that is suspended."""

    def mark(self, task: Any) -> Any:
        """See TaskView; None, too, when it has ended."""

    def may_release(self, lock: Primitive, others: Sequence[TaskView]) -> bool:
        """Whether a timer, or the end of one of these tasks, may release the lock."""
