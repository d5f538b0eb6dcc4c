"""Tasks of asyncio as native code reads them, and what each of them waits for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final

from loopcanary.late_dataclass import dataclass
from loopcanary.model.outside import TaskSight, TaskState, TaskWait
from loopcanary.model.stack import Frame
from loopcanary.model.task_places import HOLDERS, TASK, has_timeout, place_of
from loopcanary.model.waiting import Target

ENDED: Final = 4
_STATES: Final = {1: TaskState.NOT_BEGUN, 2: TaskState.WAITS, 3: TaskState.RUNS}
"""As native/cpython/tasks/tasks.h has them."""
_DIGITS_MAX: Final = 19
_RUNS_UNTIL_IT_ENDS: Final = "_run_until_complete_cb"
_WITHOUT: Final = ("__aenter__", "Lock.acquire")
_LETS_GO: Final = "Condition.wait"
_OF_AN_EXECUTOR: Final = "_chain_future.<locals>._call_check_cancel"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAwait:
    """A suspended frame. Objects are addresses, 0: none."""

    frame: Frame | None
    """None: it could not be read."""
    first: int
    """Its first argument."""
    held: tuple[tuple[int, str], ...]
    """What its open `with` and `async with` blocks will leave, and the function for that; "": the lock of the
    condition before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRead:
    """A task. Objects are addresses, 0: none; types and functions are names, "": unknown."""

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
    awaits: tuple[TaskAwait, ...]
    """Outermost first."""
    count: int = 1
    """How many tasks wait like this one, with it; 0: another of them says."""
    since_ns: int | None = None
    """Since when it has waited like this, at least: monotonic; None: not known."""


Targets = Callable[[int, str], Target | None]
"""Says what the number in an attribute of an attribute ... of an instance stands for: a connection's peer, a
child."""


def no_target(_instance: int, _path: str) -> None:
    """The objects are not there any more."""


def sights(
    reads: Iterable[TaskRead], *, moving: AbstractSet[int] = frozenset(), target_of: Targets = no_target
) -> tuple[TaskSight, ...]:
    """What the tasks wait for, the main task first. `moving`: addresses of those that go on all the time."""
    tasks = in_order(reads)
    loops = {loop: number for number, loop in enumerate(dict.fromkeys(task.loop for task in tasks))}
    waits = _Waits(tasks, moving, target_of)
    seen = [waits.sight(task, loops) for task in tasks]
    for sight in list(seen):  # up to 3.11, wait_for cancels the task that it waits for
        wait = sight.wait
        if wait is not None and wait.task is not None and wait.has_timeout:
            awaited = seen[wait.task]
            if awaited.wait is not None:
                seen[wait.task] = replace(awaited, wait=replace(awaited.wait, has_timeout=True))
    return tuple(seen)


def in_order(reads: Iterable[TaskRead]) -> list[TaskRead]:
    """As `sights` has them."""
    return sorted(reads, key=_order)


def _order(task: TaskRead) -> tuple[bool, str, int, int]:
    """The main task first, `Task-2` before `Task-10`: sets have no order."""
    front = task.name.rstrip("0123456789")
    number = task.name[len(front) :]
    is_number = number.isascii() and 0 < len(number) < _DIGITS_MAX
    return task.callback != _RUNS_UNTIL_IT_ENDS, front, int(number) if is_number else 0, task.address


class _Waits:
    """What the tasks of one reading wait for."""

    def __init__(self, tasks: Sequence[TaskRead], moving: AbstractSet[int], target_of: Targets) -> None:
        self._moving = moving
        self._target_of = target_of
        self._numbers = {task.address: number for number, task in enumerate(tasks)}
        self._holders = holders(task for task in tasks if task.address not in moving)

    def sight(self, task: TaskRead, loops: Mapping[int, int]) -> TaskSight:
        state = _STATES.get(task.state, TaskState.UNREADABLE)
        if task.address in self._moving:
            state = TaskState.MOVING
        elif state is TaskState.WAITS and not task.future:
            state = TaskState.READY
        inner_first = reversed(task.awaits) if state is not TaskState.MOVING else ()
        frames = tuple(one.frame for one in inner_first if one.frame is not None)
        return TaskSight(
            name=task.name,
            is_main=task.callback == _RUNS_UNTIL_IT_ENDS or _is_of_uvloop(frames[-1:]),
            loop=loops[task.loop],
            state=state,
            wait=self._wait(task, frames) if state is TaskState.WAITS else None,
            frames=frames,
            truncated=task.cut,
            count=task.count,
            since_ns=task.since_ns,
        )

    def _wait(self, task: TaskRead, frames: tuple[Frame, ...]) -> TaskWait:
        exits = [function for one in task.awaits for _, function in one.held]
        wait = TaskWait(what=_unplaced(task, frames), has_timeout=has_timeout(frames, exits))
        found = place_of(frames)
        if found is None or len(frames) != len(task.awaits):
            number = self._numbers.get(task.future)
            return wait if number is None else replace(wait, what="another task", task=number)
        place, at = found
        argument = task.awaits[-1 - at].first
        if place.argument == HOLDERS:
            held = tuple(self._numbers[address] for address in self._holders.get(argument, ()))
            return replace(wait, what=place.what, holders=held)
        if place.argument == TASK:
            return replace(wait, what=place.what, task=self._numbers.get(argument))
        target = None if place.argument is None else self._target_of(argument, place.argument)
        return replace(wait, what=place.what, target=target)


def _is_of_uvloop(outermost: Sequence[Frame]) -> bool:
    """Whether uvloop.run made the task: what it calls at the task's end has no name that can be read."""
    return any(
        frame.qualname == "run.<locals>.wrapper" and frame.file.endswith("/uvloop/__init__.py")
        for frame in outermost
    )


def _unplaced(task: TaskRead, frames: Sequence[Frame]) -> str:
    """What a task outside of the known places waits for."""
    if task.future_type == "_GatheringFuture":
        return "several tasks (asyncio.gather)"
    if task.future_callback == _OF_AN_EXECUTOR:
        return "a concurrent.futures.Future (of an executor, or of another loop)"
    return f"a future, in {frames[0].qualname}" if frames else "a future"


def holders(tasks: Iterable[TaskRead]) -> dict[int, tuple[int, ...]]:
    """Of each object, the tasks that are inside an `async with` block of it, but for those that wait for it.
    One in `Condition.wait` has let a lock go, which may be any."""
    found: dict[int, dict[int, None]] = {}
    for task in tasks:
        named = [(one.frame.qualname, one.first) for one in task.awaits if one.frame is not None]
        if any(qualname.endswith(_LETS_GO) for qualname, _ in named):
            continue
        without = {first for qualname, first in named if qualname.endswith(_WITHOUT)}
        for one in task.awaits:
            has_it = False
            for instance, function in one.held:
                has_it = instance not in without if function else has_it
                if has_it:
                    found.setdefault(instance, {})[task.address] = None
    return {instance: tuple(addresses) for instance, addresses in found.items()}
