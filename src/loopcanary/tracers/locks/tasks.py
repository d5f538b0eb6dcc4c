"""A suspended task as the search for deadlocks sees it, and how a kind of loop is asked for its tasks."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, Protocol

from loopcanary.late_dataclass import dataclass
from loopcanary.tracers.locks.primitives import Primitive


@dataclass(frozen=True, slots=True)
class TaskView:
    """A task of the loop, suspended. Or a thread that waits."""

    task: Any
    """Of a thread a WaitingThread."""
    name: str
    coroutine: Any
    """The outermost; of a thread None."""
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


@dataclass(frozen=True, slots=True)
class LostWait:
    """A task that waits for what nothing can reach any more."""

    task: Any
    words: str
    """`an item in`."""
    thing: Any


@dataclass(frozen=True, slots=True)
class Lost:
    """Waits that nothing can end."""

    waits: tuple[LostWait, ...]
    failed: tuple[tuple[str, str], ...]
    """Tasks that knew what is waited for and have failed, unnoticed: name, and type of the error."""
    waiting: int
    """Other tasks that cannot go on either."""


def ours(_: object) -> None:
    """The callback of our weak references to what tasks wait for, by which they are known: nobody is reached
    by them."""


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

    def main_mark(self) -> Any:
        """The mark of the task that the loop runs until it is complete; None: there is none."""

    def lost(self) -> Generator[None, None, Lost | None]:
        """See lost.lost. To be called while nothing of the caller's holds a task, a mark or a coroutine."""
