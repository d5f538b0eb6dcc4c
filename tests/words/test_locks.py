"""Deadlocks of tasks in words."""

from __future__ import annotations

import pytest

from loopcanary.kinds.deadlock import DeadlockKind
from loopcanary.model.issues.locks import Deadlock, TaskWait


def lost(*names: str) -> Deadlock:
    waits = (TaskWait(task=name, waits_for="an item in Queue 'jobs'") for name in names)
    return Deadlock(began_wall_ns=0, duration_ns=0, cycle=tuple(waits), is_lost=True, waiting=1)


@pytest.mark.parametrize(
    ("issue", "words"),
    [
        (lost("main"), "the task main waits for an item in Queue 'jobs', which nothing can reach any more"),
        (lost("a", "b"), "2 tasks wait for what nothing can reach any more: a, b"),
    ],
)
def test_what_nothing_can_reach_is_no_circle(issue, words):
    assert DeadlockKind().title(issue) == words
    assert list(DeadlockKind().evidence(issue)) == [
        *(f"{wait.task} waits for {wait.waits_for}" for wait in issue.cycle),
        "No task, timer, callback, thread or module that still runs can reach it",
        "1 other task can go on only when one of these does",
    ]


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
