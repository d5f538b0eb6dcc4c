"""Deadlocks of tasks, locks that were not released, and locks that are acquired in both orders, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from loopcanary.words.text import count_of, printable

if TYPE_CHECKING:
    from loopcanary.model.issues.lock_orders import LockOrder, TakenOrder
    from loopcanary.model.issues.locks import Deadlock, LockLeak, TaskWait
    from loopcanary.model.stack_frame import StackFrame

ORDER_ADVICE = "Acquire them in the same order on all threads, or hold one at a time"
_NAME_MAX = 120
_REASON_MAX = 300


def deadlock_words(issue: Deadlock) -> str:
    """`2 tasks wait for each other: pay, refund`; `the task main waits for an item in Queue 'jobs', which
    nothing can reach any more`."""
    names = ", ".join(printable(wait.task, _NAME_MAX) for wait in issue.cycle[:4])
    if issue.is_lost and len(issue.cycle) == 1:
        return f"the task {wait_words(issue.cycle[0])}, which nothing can reach any more"
    if len(issue.cycle) == 1:
        return f"the task {names} waits for itself"
    more = ", ..." if len(issue.cycle) > 4 else ""
    if issue.is_lost:
        return f"{count_of(len(issue.cycle), 'task')} wait for what nothing can reach any more: {names}{more}"
    threads = sum(wait.is_thread for wait in issue.cycle)
    counts = ((len(issue.cycle) - threads, "task"), (threads, "thread"))
    who = " and ".join(count_of(count, one) for count, one in counts if count)
    return f"{who} wait for each other: {names}{more}"


def leak_words(issue: LockLeak) -> str:
    """`Lock 'Cache.lock' was not released: 3 tasks wait for it`."""
    waiting = f"{count_of(issue.waiting, 'task')} wait{'s' if issue.waiting == 1 else ''}"
    return f"{printable(issue.primitive, _NAME_MAX)} was not released: {waiting} for it"


def wait_words(wait: TaskWait) -> str:
    """`pay holds Lock 'a' and waits for Lock 'b'`."""
    holds = f"holds {printable(wait.holds, _NAME_MAX)} and " if wait.holds else ""
    name = f"{'the thread ' if wait.is_thread else ''}{printable(wait.task, _NAME_MAX)}"
    return f"{name} {holds}waits for {printable(wait.waits_for, _NAME_MAX)}"


def holder_words(issue: LockLeak) -> str:
    """`the task refund acquired it, and ended without releasing it`."""
    name = printable(issue.acquired_by, _NAME_MAX)
    if issue.has_ended:
        return f"the task {name} acquired it, and ended without releasing it"
    return f"the task {name} acquired it, did not release it, and now waits for it itself"


def of_deadlock(issue: Deadlock) -> Iterator[str]:
    """Who waits for whose lock, one sentence a task."""
    yield from map(wait_words, issue.cycle)
    if issue.is_lost:
        yield "No task, timer, callback, thread or module that goes on can reach it"
    if issue.waiting:
        yield f"{count_of(issue.waiting, 'other task')} can go on only when one of these does"


def of_leak(issue: LockLeak) -> Iterator[str]:
    """Who acquired it, and who waits."""
    yield holder_words(issue)
    names = ", ".join(printable(wait.task, _NAME_MAX) for wait in issue.waiters[:4])
    more = ", ..." if issue.waiting > 4 else ""
    yield f"{count_of(issue.waiting, 'task')} in line for it: {names}{more}"


def order_words(issue: LockOrder) -> str:
    """`2 locks are acquired in both orders: Lock 'Bank.accounts', Lock 'Bank.ledger'`."""
    names = ", ".join(printable(order.holds, _NAME_MAX) for order in issue.orders[:4])
    more = ", ..." if len(issue.orders) > 4 else ""
    how = "in a circle" if len(issue.orders) > 2 else "in both orders"
    return f"{count_of(len(issue.orders), 'lock')} are acquired {how}: {names}{more}"


def taken_words(order: TakenOrder) -> str:
    """`teller acquired Lock 'b' in Bank.pay (bank.py:13) while it held Lock 'a' (acquired at bank.py:12)`."""
    frame = next((one for one in order.frames if one.in_app), order.frames[0] if order.frames else None)
    place = "" if frame is None else f" in {printable(frame.qualname, _NAME_MAX)} ({_line(frame)})"
    held = f" (acquired at {_line(order.held_at[0])})" if order.held_at else ""
    thread, takes = printable(order.thread, _NAME_MAX), printable(order.takes, _NAME_MAX)
    return f"{thread} acquired {takes}{place} while it held {printable(order.holds, _NAME_MAX)}{held}"


def of_order(issue: LockOrder) -> Iterator[str]:
    """Who acquired which lock while it held which, one sentence an order; and what has not happened."""
    yield from map(taken_words, issue.orders)
    others, all_of_them = ("the other one", "both are between the two")
    if len(issue.orders) > 2:
        others, all_of_them = ("the next one", "each is between its two")
    yield f"No deadlock was seen: each thread waits for {others} when {all_of_them} at the same time"


def order_notice(issue: LockOrder) -> tuple[str, str]:
    """Title and reason of a notification: no thread was held."""
    reason = taken_words(issue.orders[0]) if issue.orders else ""
    return f"lock order: {issue.title}", printable(reason, _REASON_MAX)


def _line(frame: StackFrame) -> str:
    file = frame.file.replace("\\", "/").rpartition("/")[2]
    return f"{printable(file, _NAME_MAX)}:{frame.line}"
