"""What tasks of trio wait for and hold. Loaded when a task of trio has to wait for a lock."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from inspect import unwrap
from typing import Any

from loopcanary.tracers.locks.coroutines import code_of, coroutines, held, local
from loopcanary.tracers.locks.primitives import ACQUIRES, Primitive
from loopcanary.tracers.locks.tasks import TaskView

trio: Any = sys.modules["trio"]
"""The program has loaded it."""
_CONDITION_WAIT = unwrap(trio.Condition.wait).__code__
_START = unwrap(trio.Nursery.start).__code__
_NURSERY_EXIT = unwrap(trio.Nursery._nested_child_finished).__code__


def root() -> Any:
    """The outermost task of the run on this thread. None: there is none, or its time is a MockClock's, which
    a task of ours that sleeps would move."""
    try:
        found = trio.lowlevel.current_root_task()
    except RuntimeError:
        return None
    return None if found is None or type(found._runner.clock).__name__ == "MockClock" else found


class TrioTasks:
    """See LoopTasks. What looks is a system task of the run, which ends with it."""

    kind = "trio"

    def call_later(self, seconds: float, call: Callable[[], object]) -> None:
        """See LoopTasks."""

        async def loopcanary() -> None:
            await trio.sleep(seconds)
            call()

        with suppress(RuntimeError):  # the run is ending
            trio.lowlevel.spawn_system_task(loopcanary, name="loopcanary")

    def all(self) -> Iterator[Any]:
        """See LoopTasks."""
        parents = [root()]  # trio's own
        while parents:
            for nursery in parents.pop().child_nurseries:
                yield from nursery.child_tasks
                parents += nursery.child_tasks

    def view(self, task: Any) -> TaskView:
        """See LoopTasks."""
        chain = coroutines(task.coro)
        lock, tasks, keys = _waits(task, chain)
        mark = task._abort_func
        return TaskView(
            task=task,
            name=task.name,
            coroutine=task.coro,
            mark=mark,
            lock=None if mark is None else lock,
            tasks=() if mark is None else tasks,
            keys=keys,
            holds=held(chain, lock, None),
        )

    def mark(self, task: Any) -> Any:
        """See LoopTasks."""
        return task._abort_func

    def may_release(self, lock: Primitive, others: Sequence[TaskView]) -> bool:  # noqa: ARG002
        """See LoopTasks. Trio has no timers and no callbacks."""
        return False


def _waits(task: Any, chain: Sequence[Any]) -> tuple[Primitive | None, tuple[Any, ...], tuple[Any, ...]]:
    """Lock, tasks and keys of a TaskView."""
    keys: tuple[Any, ...] = ()
    tasks: tuple[Any, ...] = ()
    for one in reversed(chain):
        code = code_of(one)
        if code in ACQUIRES:
            return local(one, "self"), (), ()
        if code is _CONDITION_WAIT:
            lock = local(one, "self")._lock
            return (lock if task in lock._lot._parked else None), (), ()
        if code is _NURSERY_EXIT:
            nursery = local(one, "self")
            tasks, keys = tuple(nursery.child_tasks), (nursery, nursery.cancel_scope)
        elif (
            code is _START
        ):  # it waits in a nursery of its own; any task may say that the new one has started
            keys = (*keys, local(one, "task_status"))
    return None, tasks, keys
