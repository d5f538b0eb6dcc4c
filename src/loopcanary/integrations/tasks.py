"""Task queues and notebooks: a job is a piece of work with its own threshold, and so is a cell. Each function
is called when the module that it takes from `sys.modules` is imported."""

from __future__ import annotations

import sys
import threading
from contextlib import AbstractContextManager
from types import FunctionType
from typing import Any

from loopcanary.integrations.telling import Telling
from loopcanary.patches import Patches
from loopcanary.whose_exception import ours


def patch_celery(patches: Patches, tell: Telling) -> None:
    """A task is timed by the signals that Celery's workers send around it."""
    signals: Any = sys.modules["celery.signals"]
    tasks = _CeleryTasks(tell)
    signals.task_prerun.connect(tasks.begins, weak=False)
    signals.task_postrun.connect(tasks.ends, weak=False)
    patches.hook("celery.signals")
    patches.hook("task_prerun of celery.signals", lambda: signals.task_prerun.disconnect(tasks.begins))
    patches.hook("task_postrun of celery.signals", lambda: signals.task_postrun.disconnect(tasks.ends))


class _Running(threading.local):
    """The tasks of one thread, innermost last: a task may run another in its place."""

    def __init__(self) -> None:
        self.tasks: list[tuple[object, AbstractContextManager[object]]] = []


class _CeleryTasks:
    """Each method runs on the task's thread."""

    def __init__(self, tell: Telling) -> None:
        self._tell = tell
        self._running = _Running()

    def begins(self, sender: Any = None, task_id: object = None, **_more: Any) -> None:
        work = self._tell.task(str(getattr(sender, "name", None) or "Celery task"))
        work.__enter__()
        self._running.tasks.append((task_id, work))

    def ends(self, sender: Any = None, task_id: object = None, **_more: Any) -> None:  # noqa: ARG002 - a keyword
        """Also ends tasks inside this one that sent no signal at their end."""
        tasks = self._running.tasks
        if not any(known == task_id for known, _ in tasks):
            return
        while tasks:
            known, work = tasks.pop()
            work.__exit__(None, None, None)
            if known == task_id:
                return


def patch_dramatiq(patches: Patches, tell: Telling) -> None:
    """A message is named by its actor."""

    def around(original: FunctionType) -> Any:
        def process_message(self: Any, message: Any) -> Any:
            with tell.task(str(getattr(message, "actor_name", "dramatiq message"))):
                return original(self, message)

        return process_message

    patches.wrap(sys.modules["dramatiq.worker"]._WorkerThread, "process_message", around)  # noqa: SLF001 - the place


def patch_rq(patches: Patches, tell: Telling) -> None:
    """A job is named by its function. Which class defines the method differs between versions."""

    def around(original: FunctionType) -> Any:
        def perform_job(self: Any, job: Any, *args: Any, **kwargs: Any) -> Any:
            with tell.task(_name_of_job(job)):
                return original(self, job, *args, **kwargs)

        return perform_job

    for owner in sys.modules["rq.worker"].Worker.__mro__:
        patches.wrap(owner, "perform_job", around)


def _name_of_job(job: Any) -> str:
    try:
        return str(job.func_name)
    except ours():  # a job that cannot be read; RQ will say so
        return "RQ job"


def patch_ipython(patches: Patches, tell: Telling) -> None:
    """A cell is named by its number, and its source is known here alone. By the events around it, since a
    frame of ours below the shell would be in the cells' tracebacks."""

    def around(original: FunctionType) -> Any:
        def trigger(self: Any, event: str, *args: Any, **kwargs: Any) -> Any:
            if event == "post_execute":
                tell.back_to_scene(None)
            result = original(self, event, *args, **kwargs)
            if event == "pre_execute":
                tell.judges()
                tell.cell()
            elif event == "pre_run_cell":
                tell.scene(lambda: f"In [{self.shell.execution_count}]")
            return result

        return trigger

    patches.wrap(sys.modules["IPython.core.events"].EventManager, "trigger", around)
