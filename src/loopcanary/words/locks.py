"""Deadlocks of tasks and locks that were not released, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from loopcanary.words.text import count_of, printable

if TYPE_CHECKING:
    from loopcanary.model.issues.locks import Deadlock, LockLeak, TaskWait

_NAME_MAX = 120


def deadlock_words(issue: Deadlock) -> str:
    """`2 tasks wait for each other: pay, refund`."""
    names = ", ".join(printable(wait.task, _NAME_MAX) for wait in issue.cycle[:4])
    if len(issue.cycle) == 1:
        return f"the task {names} waits for itself"
    more = ", ..." if len(issue.cycle) > 4 else ""
    return f"{count_of(len(issue.cycle), 'task')} wait for each other: {names}{more}"


def leak_words(issue: LockLeak) -> str:
    """`Lock 'Cache.lock' was not released: 3 tasks wait for it`."""
    waiting = f"{count_of(issue.waiting, 'task')} wait{'s' if issue.waiting == 1 else ''}"
    return f"{printable(issue.primitive, _NAME_MAX)} was not released: {waiting} for it"


def wait_words(wait: TaskWait) -> str:
    """`pay holds Lock 'a' and waits for Lock 'b'`."""
    holds = f"holds {printable(wait.holds, _NAME_MAX)} and " if wait.holds else ""
    return f"{printable(wait.task, _NAME_MAX)} {holds}waits for {printable(wait.waits_for, _NAME_MAX)}"


def holder_words(issue: LockLeak) -> str:
    """`the task refund acquired it, and ended without releasing it`."""
    name = printable(issue.acquired_by, _NAME_MAX)
    if issue.has_ended:
        return f"the task {name} acquired it, and ended without releasing it"
    return f"the task {name} acquired it, did not release it, and now waits for it itself"


def of_deadlock(issue: Deadlock) -> Iterator[str]:
    """Who waits for whose lock, one sentence a task."""
    yield from map(wait_words, issue.cycle)
    if issue.waiting:
        yield f"{count_of(issue.waiting, 'other task')} can go on only when one of these does"


def of_leak(issue: LockLeak) -> Iterator[str]:
    """Who acquired it, and who waits."""
    yield holder_words(issue)
    names = ", ".join(printable(wait.task, _NAME_MAX) for wait in issue.waiters[:4])
    more = ", ..." if issue.waiting > 4 else ""
    yield f"{count_of(issue.waiting, 'task')} in line for it: {names}{more}"
