"""A suspended task as the search for deadlocks sees it, how a kind of loop is asked for its tasks, and which
tasks cannot go on, since each waits for another one of them. What asks many tasks is a generator, and gives
way after each."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from loopcanary.late_dataclass import dataclass
from loopcanary.tracers.locks.primitives import Primitive


@dataclass(frozen=True, slots=True)
class TaskView:
    """A task of the loop, suspended. Or a thread that waits."""

    task: Any
    """The task; of a thread its WaitingThread."""
    name: str
    coroutine: Any
    """The outermost coroutine; None: it is a thread."""
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


def ours(_: object) -> None:
    """The callback of our weak references to what tasks wait for, by which they are known: nobody is reached
    by them."""


class LoopTasks(Protocol):
    """The tasks of one loop. Its own thread only. Nothing of the program's is called."""

    kind: str

    def call_later(self, seconds: float, call: Callable[[], object]) -> None:
        """Has the loop call it, which raises nothing. 0: with its next turn."""

    def all(self) -> Iterable[Any]:
        """The tasks that have not ended."""

    def view(self, task: Any) -> TaskView:
        """The view of a task that is suspended."""

    def mark(self, task: Any) -> Any:
        """See TaskView; None, too, when it has ended."""

    def may_release(self, lock: Primitive, others: Sequence[TaskView]) -> bool:
        """Whether a timer, or the end of one of these tasks, may release the lock."""


Views = Mapping[int, TaskView]
"""What is known of each task, by its id."""
Holders = Callable[[Primitive], Iterable[int]]
"""Gives the ids of the tasks that hold a lock."""
_Result = TypeVar("_Result")
_Steps: TypeAlias = Generator[None, None, _Result]


def holders_by_block(views: Views) -> dict[int, list[int]]:
    """By id of the lock the ids of the tasks that have entered it by `async with`."""
    found: dict[int, list[int]] = {}
    for task, view in views.items():
        for lock in view.holds:
            found.setdefault(id(lock), []).append(task)
    return found


def stuck(views: Views, holders: Holders) -> _Steps[dict[int, int]]:
    """Tasks that can never go on by what is known, each with one that it waits for and that cannot either.

    A task is one of them while one of the tasks is that all have to end before it goes on, or while all
    holders of the lock are that it waits for. (The greatest such set: what is left when all others have been
    taken out.)
    """
    waits = yield from _all_waits(views, holders)
    left = {task for task, (targets, _) in waits.items() if targets}
    has_changed = True
    while has_changed:
        has_changed = False
        for task in tuple(left):
            if not _is_stuck(*waits[task], left):
                left.remove(task)
                has_changed = True
            yield
    found = {}
    for task in left:
        found[task] = _next(task, (one for one in waits[task][0] if one in left), views)
        yield
    return found


def _next(task: int, targets: Iterable[int], views: Views) -> int:
    """Of several targets the one whose name comes next: the same in each run, as the bug's fingerprint is
    made of the cycle. So the holders of a semaphore, of which each waits for all, are one cycle."""
    own = (views[task].name, task)
    return min(targets, key=lambda one: ((views[one].name, one) <= own, views[one].name, one))


def reached(views: Views, holders: Holders, first: Iterable[int]) -> set[int]:
    """These tasks, and all that they wait for, or that those do."""
    left, found = list(first), set(first)
    while left:
        targets = _waits_for(views[left.pop()], views, holders)[0]
        left += set(targets) - found
        found.update(targets)
    return found


def held_up(views: Views, holders: Holders, first: Iterable[int]) -> _Steps[set[int]]:
    """These tasks, and all that can go on only when one of them does."""
    waits = yield from _all_waits(views, holders)
    found = set(first)
    has_changed = True
    while has_changed:
        has_changed = False
        for task, (targets, needs_all) in waits.items():
            if task not in found and targets and _is_stuck(targets, needs_all, found):
                found.add(task)
                has_changed = True
            yield
    return found


def _all_waits(views: Views, holders: Holders) -> _Steps[dict[int, tuple[tuple[int, ...], bool]]]:
    waits = {}
    for task, view in views.items():
        waits[task] = _waits_for(view, views, holders)
        yield
    return waits


def _waits_for(view: TaskView, views: Views, holders: Holders) -> tuple[tuple[int, ...], bool]:
    """Tasks, and whether all of them have to be stuck, or one is enough."""
    if view.lock is not None:
        return tuple(holders(view.lock)), True
    return tuple(id(one) for one in view.tasks if id(one) in views), False


def _is_stuck(targets: tuple[int, ...], needs_all: bool, left: set[int]) -> bool:
    return all(one in left for one in targets) if needs_all else any(one in left for one in targets)


def cycles(stuck_tasks: Mapping[int, int], name: Callable[[int], Any]) -> _Steps[list[list[int]]]:
    """Each cycle once, in the order in which its tasks wait, from the task whose name sorts first."""
    seen: set[int] = set()
    found = []
    for start in stuck_tasks:
        way: list[int] = []
        task = start
        while task not in seen:
            seen.add(task)
            way.append(task)
            task = stuck_tasks[task]
        if task in way:
            cycle = way[way.index(task) :]
            first = min(range(len(cycle)), key=lambda index: name(cycle[index]))
            found.append([*cycle[first:], *cycle[:first]])
        yield
    return found
