"""The tasks of asyncio in another process: read twice, and what each of them waits for."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from loopcanary.late_dataclass import dataclass
from loopcanary.model.circles import task_circles
from loopcanary.model.outside import TaskSight, TaskState, TaskWait
from loopcanary.model.stack import Frame
from loopcanary.outside.descriptors import target_of
from loopcanary.outside.frames import frame_of
from loopcanary.outside.task_places import HOLDERS, TASK, has_timeout, place_of
from loopcanary.words.text import count_of

if TYPE_CHECKING:
    from loopcanary.model.waiting import Target
    from loopcanary.outside.processes import Process

# As native/cpython/tasks/tasks.h has them.
_STATES: Final = {1: TaskState.NOT_BEGUN, 2: TaskState.WAITS, 3: TaskState.RUNS}
_ENDED: Final = 4
_HAS_TASKS: Final = 2
_TASKS_MAX: Final = 100_000

_READINGS_MAX: Final = 4
_TARGETS_MAX: Final = 64
"""For each the tables of all connections are read."""
_DIGITS_MAX: Final = 19
_UNREAD: Final = ("trio", "gevent")
_RUNS_UNTIL_IT_ENDS: Final = "_run_until_complete_cb"
_WITHOUT: Final = ("__aenter__", "Lock.acquire")
_LETS_GO: Final = "Condition.wait"
_PAUSES_S: Final = (0.005, 0.031, 0.013, 0.047)
"""Between further readings, before a circle is shown: tasks that go on may come back to their places."""
_OF_AN_EXECUTOR: Final = "_chain_future.<locals>._call_check_cancel"
_WHY_NONE: Final = {
    0: "asyncio is not loaded in it, or was not found: no tasks are read",
    1: "its asyncio runs without the C tasks of _asyncio, and others cannot be read",
}


class TaskReader(Protocol):
    """The part of the extension that reads tasks: see native/module/other_tasks.c."""

    def outside_tasks(self, handle: Any, /) -> tuple[int, int, list[tuple[Any, ...]]]:
        """(whether asyncio is there, tasks that cannot be read, tasks): native/module/other_tasks.c."""

    def outside_number(self, handle: Any, instance: int, path: str, /) -> int | None:
        """An attribute of an attribute ... of an instance; None: it is no number, or not known."""

    def outside_module(self, handle: Any, name: str, /) -> bool:
        """Whether the main interpreter has imported it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """A task as native/module/other_tasks.c gives it; addresses are numbers, 0: none."""

    address: int
    name: str
    loop: int
    loop_type: str
    state: int
    callback: str
    future: int
    future_type: str
    future_callback: str
    end_type: str
    cut: bool
    awaits: tuple[tuple[tuple[Any, ...] | None, int, tuple[tuple[int, str], ...]], ...]
    """Outermost first: frame, first argument, what its open `async with` blocks will leave."""


def read_tasks(
    process: Process, reader: TaskReader, handle: Any
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
    latest = {task[0]: task for task in found if task[4] != _ENDED}.values()
    tasks = [_Read(**dict(zip(_Read.__slots__, task, strict=True))) for task in latest]
    tasks.sort(key=_order)
    sights = _Waits(process, reader, handle, tasks, moving).sights()
    for pause_s in _PAUSES_S:
        if task_circles(sights):
            time.sleep(pause_s)
            moving |= {task[0] for task in set(found).difference(reader.outside_tasks(handle)[2])}
            sights = _Waits(process, reader, handle, tasks, moving).sights()
    return sights, tuple(notes)


def _order(task: _Read) -> tuple[bool, str, int, int]:
    """The main task first, `Task-2` before `Task-10`: sets have no order."""
    front = task.name.rstrip("0123456789")
    number = task.name[len(front) :]
    is_number = number.isascii() and 0 < len(number) < _DIGITS_MAX
    return task.callback != _RUNS_UNTIL_IT_ENDS, front, int(number) if is_number else 0, task.address


class _Waits:
    """What the tasks of one reading wait for."""

    def __init__(
        self, process: Process, reader: TaskReader, handle: Any, tasks: Sequence[_Read], moving: set[int]
    ) -> None:
        self._process = process
        self._reader = reader
        self._handle = handle
        self._tasks = tasks
        self._moving = moving
        self._numbers = {task.address: number for number, task in enumerate(tasks)}
        self._holders = holders((task.address, task.awaits) for task in tasks if task.address not in moving)
        self._chains: dict[tuple[Any, ...], tuple[Frame, ...]] = {}
        self._targets: dict[int, Target | None] = {}

    def sights(self) -> tuple[TaskSight, ...]:
        loops = {loop: number for number, loop in enumerate(dict.fromkeys(task.loop for task in self._tasks))}
        seen = [self._sight(task, loops) for task in self._tasks]
        for sight in list(seen):  # up to 3.11, wait_for cancels the task that it waits for
            wait = sight.wait
            if wait is not None and wait.task is not None and wait.has_timeout:
                awaited = seen[wait.task]
                if awaited.wait is not None:
                    seen[wait.task] = replace(awaited, wait=replace(awaited.wait, has_timeout=True))
        return tuple(seen)

    def _sight(self, task: _Read, loops: Mapping[int, int]) -> TaskSight:
        state = _STATES.get(task.state, TaskState.UNREADABLE)
        if task.address in self._moving:
            state = TaskState.MOVING
        elif state is TaskState.WAITS and not task.future:
            state = TaskState.READY
        frames = () if state is TaskState.MOVING else self._frames(task)
        return TaskSight(
            name=task.name,
            is_main=task.callback == _RUNS_UNTIL_IT_ENDS or _is_of_uvloop(frames[-1:]),
            loop=loops[task.loop],
            state=state,
            wait=self._wait(task, frames) if state is TaskState.WAITS else None,
            frames=frames,
            truncated=task.cut,
        )

    def _frames(self, task: _Read) -> tuple[Frame, ...]:
        """Thousands of tasks have the same ones."""
        places = tuple(place for place, _, _ in reversed(task.awaits) if place is not None)
        if places not in self._chains:
            self._chains[places] = tuple(map(frame_of, places))
        return self._chains[places]

    def _wait(self, task: _Read, frames: tuple[Frame, ...]) -> TaskWait:
        exits = [function for _, _, held in task.awaits for _, function in held]
        wait = TaskWait(what=_unplaced(task, frames), has_timeout=has_timeout(frames, exits))
        found = place_of(frames)
        if found is None or len(frames) != len(task.awaits):
            number = self._numbers.get(task.future)
            return wait if number is None else replace(wait, what="another task", task=number)
        place, at = found
        argument = task.awaits[-1 - at][1]
        if place.argument == HOLDERS:
            held = tuple(self._numbers[address] for address in self._holders.get(argument, ()))
            return replace(wait, what=place.what, holders=held)
        if place.argument == TASK:
            return replace(wait, what=place.what, task=self._numbers.get(argument))
        target = None if place.argument is None else self._target(argument, place.argument)
        return replace(wait, what=place.what, target=target)

    def _target(self, instance: int, path: str) -> Target | None:
        if instance not in self._targets and len(self._targets) < _TARGETS_MAX:
            number = self._reader.outside_number(self._handle, instance, path)
            call = "wait4" if path == "pid" else "recvfrom"
            self._targets[instance] = None if number is None else target_of(self._process, call, (number,))
        return self._targets.get(instance)


def _is_of_uvloop(outermost: Sequence[Frame]) -> bool:
    """Whether uvloop.run made the task: what it calls at the task's end has no name that can be read."""
    return any(
        frame.qualname == "run.<locals>.wrapper" and frame.file.endswith("/uvloop/__init__.py")
        for frame in outermost
    )


def _unplaced(task: _Read, frames: Sequence[Frame]) -> str:
    """What a task outside of the known places waits for."""
    if task.future_type == "_GatheringFuture":
        return "several tasks (asyncio.gather)"
    if task.future_callback == _OF_AN_EXECUTOR:
        return "a concurrent.futures.Future (of an executor, or of another loop)"
    return f"a future, in {frames[0].qualname}" if frames else "a future"


def holders(
    tasks: Iterable[tuple[int, Sequence[tuple[tuple[Any, ...] | None, int, Sequence[tuple[int, str]]]]]],
) -> dict[int, tuple[int, ...]]:
    """Of each object, the tasks that are inside an `async with` block of it, but for those that wait for it.
    One in `Condition.wait` has let a lock go, which may be any. An object without a function is the lock of
    the condition before it."""
    found: dict[int, dict[int, None]] = {}
    for address, awaits in tasks:
        if any(place and place[0].endswith(_LETS_GO) for place, _, _ in awaits):
            continue
        without = {first for place, first, _ in awaits if place and place[0].endswith(_WITHOUT)}
        for _, _, held in awaits:
            has_it = False
            for instance, function in held:
                has_it = instance not in without if function else has_it
                if has_it:
                    found.setdefault(instance, {})[address] = None
    return {instance: tuple(addresses) for instance, addresses in found.items()}
