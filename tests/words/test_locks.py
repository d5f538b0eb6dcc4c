"""Deadlocks of tasks in words."""

from __future__ import annotations

import pytest

from loopcanary.kinds.deadlock import DeadlockKind
from loopcanary.model.issues.locks import Deadlock, TaskWait


@pytest.mark.parametrize(
    ("threads", "words"),
    [
        ((), "2 tasks wait for each other: pay, loads"),
        (("loads",), "1 task and 1 thread wait for each other: pay, loads"),
        (("pay", "loads"), "2 threads wait for each other: pay, loads"),
    ],
)
def test_threads_in_a_circle_are_called_so(threads, words):
    waits = (TaskWait(task=one, waits_for="it", is_thread=one in threads) for one in ("pay", "loads"))
    issue = Deadlock(began_wall_ns=0, duration_ns=0, cycle=tuple(waits))
    assert DeadlockKind().title(issue) == words
    assert list(DeadlockKind().evidence(issue)) == [
        f"{'the thread ' if one in threads else ''}{one} waits for it" for one in ("pay", "loads")
    ]
