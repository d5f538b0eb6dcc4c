"""Celery: a task is a piece of work, by the signals that its workers send around it."""

from __future__ import annotations

import sys
import threading
from contextlib import AbstractContextManager
from typing import Any

from loopcanary.integrations.patches import Patches
from loopcanary.integrations.telling import Telling


def patch(patches: Patches, tell: Telling) -> None:
    signals: Any = sys.modules["celery.signals"]
    tasks = _Tasks(tell)
    signals.task_prerun.connect(tasks.begins, weak=False)
    signals.task_postrun.connect(tasks.ends, weak=False)
    patches.when_taken_back(lambda: signals.task_prerun.disconnect(tasks.begins))
    patches.when_taken_back(lambda: signals.task_postrun.disconnect(tasks.ends))


class _Running(threading.local):
    """The tasks of one thread, innermost last: a task may run another in its place."""

    def __init__(self) -> None:
        self.tasks: list[tuple[object, AbstractContextManager[object]]] = []


class _Tasks:
    def __init__(self, tell: Telling) -> None:
        self._tell = tell
        self._running = _Running()

    def begins(self, sender: Any = None, task_id: object = None, **_more: Any) -> None:
        """On the task's thread."""
        work = self._tell.task(str(getattr(sender, "name", None) or "Celery task"))
        work.__enter__()
        self._running.tasks.append((task_id, work))

    def ends(self, sender: Any = None, task_id: object = None, **_more: Any) -> None:  # noqa: ARG002 - a keyword
        """On the task's thread. Tasks inside this one that ended without a signal end here."""
        tasks = self._running.tasks
        if not any(known == task_id for known, _ in tasks):
            return
        while tasks:
            known, work = tasks.pop()
            work.__exit__(None, None, None)
            if known == task_id:
                return
