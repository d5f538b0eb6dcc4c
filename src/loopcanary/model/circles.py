"""Circles of those who wait for each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loopcanary.model.outside import TaskSight, TaskWait


def circles(waits_for: Mapping[int, int]) -> list[tuple[int, ...]]:
    """Each circle once: those who wait, in the order in which they wait for each other."""
    found: list[tuple[int, ...]] = []
    seen: set[int] = set()
    for start in waits_for:
        path: dict[int, int] = {}
        at: int | None = start
        while at is not None and at not in seen:
            seen.add(at)
            path[at] = len(path)
            at = waits_for.get(at)
        if at in path:
            found.append(tuple(path)[path[at] :])
    return found


def task_circles(tasks: Sequence[TaskSight]) -> list[tuple[int, ...]]:
    """Circles of tasks, by number. Each waits for a lock that only the next one seems to hold, or for its
    end, and is not seen to be within a timeout. One that waits for itself is none: it may have released its
    lock by hand."""
    waits_for = {}
    for number, task in enumerate(tasks):
        wait = task.wait
        if wait is not None and not wait.has_timeout and (on := _only(wait)) is not None:
            waits_for[number] = on
    return [circle for circle in circles(waits_for) if len(circle) > 1]


def behind(circle: Sequence[int], tasks: Sequence[TaskSight]) -> set[int]:
    """The tasks of the circle, and those that can go on only when one of them does."""
    stuck, found = set(circle), True
    while found:
        found = False
        for number, task in enumerate(tasks):
            on = None if number in stuck or task.wait is None else _only(task.wait)
            if on in stuck:
                stuck.add(number)
                found = True
    return stuck


def is_lock(wait: TaskWait) -> bool:
    """Whether only one task can hold it."""
    return wait.what == "an asyncio.Lock"


def _only(wait: TaskWait) -> int | None:
    """The one task on which it depends; a semaphore has others that may release it."""
    if wait.task is not None:
        return wait.task
    return wait.holders[0] if len(wait.holders) == 1 and is_lock(wait) else None
