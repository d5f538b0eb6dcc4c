"""What tasks of trio wait for and hold. Loaded when a task of trio has to wait for a lock."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from inspect import unwrap
from typing import Any

from loopcanary.tracers.locks.coroutines import code_in, code_of, coroutines, held, local, runs
from loopcanary.tracers.locks.primitives import (
    ACQUIRES,
    HANDLES,
    THREAD_WAITS,
    THREAD_WORKS,
    Primitive,
    know_handles,
)
from loopcanary.tracers.locks.tasks import TaskView

trio: Any = sys.modules["trio"]
"""The program has loaded it."""
_CONDITION_WAIT = unwrap(trio.Condition.wait).__code__
_START = unwrap(trio.Nursery.start).__code__
_NURSERY_EXIT = unwrap(trio.Nursery._nested_child_finished).__code__
_IN_THREAD = unwrap(trio.to_thread.run_sync).__code__
_TO_TRIO = getattr(sys.modules.get("trio._threads"), "_send_message_to_trio", None)  # from 0.23 on
if _TO_TRIO is not None:
    THREAD_WAITS[_TO_TRIO.__code__] = "message_to_trio"
    THREAD_WORKS.update(dict.fromkeys(code_in(_IN_THREAD, "worker_fn"), "task_register"))


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
        async def loopcanary() -> None:
            await trio.sleep(seconds)
            call()

        with suppress(RuntimeError):  # the run is ending
            trio.lowlevel.spawn_system_task(loopcanary, name="loopcanary")

    def all(self) -> Iterator[Any]:
        know_handles()
        parents = [root()]  # trio's own
        while parents:
            for nursery in parents.pop().child_nurseries:
                yield from nursery.child_tasks
                parents += nursery.child_tasks

    def view(self, task: Any) -> TaskView:
        chain = coroutines(task.coro)
        lock, tasks, keys = _waits(task, chain, self.all)
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
        return task._abort_func

    def may_release(self, lock: Primitive, others: Sequence[TaskView]) -> bool:  # noqa: ARG002
        """See LoopTasks. Trio has no timers and no callbacks."""
        return False


def _waits(
    task: Any, chain: Sequence[Any], others: Callable[[], Iterator[Any]]
) -> tuple[Primitive | None, tuple[Any, ...], tuple[Any, ...]]:
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
            if nursery._pending_starts:
                tasks += tuple(new for each in others() for new in _to_start(each, nursery))
        elif code is _IN_THREAD and local(one, "msg_from_thread") is None:  # it runs nothing for the thread
            return None, (local(one, "task_register"),), ()
        elif code in HANDLES:
            handle = local(one, "self")
            return None, tuple(each for each in others() if runs(each.coro, handle)), ()
        elif (
            code is _START
        ):  # it waits in a nursery of its own; any task may say that the new one has started
            keys = (*keys, local(one, "task_status"))
    return None, tasks, keys


def _to_start(task: Any, nursery: Any) -> Iterator[Any]:
    """Tasks that are to be in the nursery when they say that they have started, for which this one waits."""
    for one in coroutines(task.coro):
        if code_of(one) is _START and local(one, "self") is nursery:
            yield from local(one, "old_nursery").child_tasks
