"""The tasks of asyncio in another process: read twice, and what each of them waits for."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from loopcanary.model.circles import task_circles
from loopcanary.model.outside import TaskSight
from loopcanary.model.stack import Frame
from loopcanary.model.task_reads import ENDED, TaskAwait, TaskRead, sights
from loopcanary.outside.descriptors import target_of
from loopcanary.outside.frames import frame_of
from loopcanary.words.text import count_of

if TYPE_CHECKING:
    from loopcanary._native import Native
    from loopcanary.model.waiting import Target
    from loopcanary.outside.processes import Process

_HAS_TASKS: Final = 2
_TASKS_MAX: Final = 100_000
_READINGS_MAX: Final = 4
_TARGETS_MAX: Final = 64
"""For each the tables of all connections are read."""
_UNREAD: Final = ("trio", "gevent")
_PAUSES_S: Final = (0.005, 0.031, 0.013, 0.047)
"""Between further readings, before a circle is shown: tasks that go on may come back to their places."""
_WHY_NONE: Final = {
    0: "asyncio is not loaded in it, or was not found: no tasks are read",
    1: "its asyncio runs without the C tasks of _asyncio, and others cannot be read",
}


def read_tasks(
    process: Process, reader: Native, handle: Any
) -> tuple[tuple[TaskSight, ...] | None, tuple[str, ...]]:
    """The tasks of the main interpreter, and what could not be seen. A task in which two readings in a row do
    not agree is moving."""
    loaded, others, found = reader.outside_tasks(handle)
    before, moving = found, {task[0] for task in found}
    for _ in range(_READINGS_MAX - 1):
        loaded, unknown, found = reader.outside_tasks(handle)
        others = min(others, unknown)  # a task that has just died looks like another object
        moving = {task[0] for task in set(found).difference(before)}
        if len(found) == len(before) and not moving:  # a set that grows while it is read lacks some
            break
        before = found
    notes = [
        f"{name} is loaded in it: its tasks are not read"
        for name in _UNREAD
        if reader.outside_module(handle, name)
    ]
    if loaded != _HAS_TASKS:
        return (), (_WHY_NONE[loaded], *notes)
    if others:
        notes.append(f"not read: {count_of(others, 'task')} of classes other than asyncio's C class")
    if len(found) >= _TASKS_MAX:
        notes.append(f"only {count_of(_TASKS_MAX, 'task')} are read")
    frames = _Frames()
    reads = [frames.task(task) for task in {task[0]: task for task in found if task[4] != ENDED}.values()]
    targets = _Targets(process, reader, handle)
    seen = sights(reads, moving=moving, target_of=targets)
    for pause_s in _PAUSES_S:
        if task_circles(seen):
            time.sleep(pause_s)
            moving |= {task[0] for task in set(found).difference(reader.outside_tasks(handle)[2])}
            seen = sights(reads, moving=moving, target_of=targets)
    return seen, tuple(notes)


class _Frames:
    """Thousands of tasks have the same ones."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], Frame] = {}

    def task(self, raw: tuple[Any, ...]) -> TaskRead:
        """`raw`: as native/module/other_tasks.c gives it."""
        *facts, awaits = raw
        read = [TaskAwait(frame=self._frame(place), first=first, held=held) for place, first, held in awaits]
        return TaskRead(**dict(zip(TaskRead.__slots__, (*facts, tuple(read)), strict=False)))

    def _frame(self, place: tuple[Any, ...] | None) -> Frame | None:
        if place is None:
            return None
        if place not in self._known:
            self._known[place] = frame_of(place)
        return self._known[place]


class _Targets:
    """See model.task_reads.Targets."""

    def __init__(self, process: Process, reader: Native, handle: Any) -> None:
        self._process = process
        self._reader = reader
        self._handle = handle
        self._known: dict[int, Target | None] = {}

    def __call__(self, instance: int, path: str) -> Target | None:
        if instance not in self._known and len(self._known) < _TARGETS_MAX:
            number = self._reader.outside_number(self._handle, instance, path)
            call = "wait4" if path == "pid" else "recvfrom"
            self._known[instance] = None if number is None else target_of(self._process, call, (number,))
        return self._known.get(instance)
