"""Deadlocks of tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from loopcanary.document.parts import Block
from loopcanary.kinds.places import culprit_of, entered_at, frame_words, identity_of, made_words, stack_part
from loopcanary.model import Session
from loopcanary.model.issues.locks import Deadlock, TaskWait
from loopcanary.model.stall import Cause
from loopcanary.protocols.kinds import Kind
from loopcanary.words.text import count_of, printable

_NAME_MAX = 120
_IN_TURN = "Take locks in the same order everywhere, or hold one at a time"
_OUTSIDE = "Release the lock before waiting for the task: it needs the lock to end"
_OUTSIDE_THREAD = "Release the lock before waiting for the thread: what it asks of the loop needs the lock"
_WAITED_FOR = "Do not let a task wait for a task that waits for it"
_TWICE = "It is not reentrant: call the code that needs it before acquiring it, or let the caller acquire it"


class DeadlockKind(Kind[Deadlock]):
    """Tasks, and threads that work for them, that wait for each other."""

    issue_class = Deadlock
    words = "deadlock"
    list_words = "deadlocks"
    is_found_early = True

    def title(self, issue: Deadlock) -> str:
        """`2 tasks wait for each other: pay, refund`."""
        names = ", ".join(printable(wait.task, _NAME_MAX) for wait in issue.cycle[:4])
        if len(issue.cycle) == 1:
            return f"the task {names} waits for itself"
        more = ", ..." if len(issue.cycle) > 4 else ""
        threads = sum(wait.is_thread for wait in issue.cycle)
        counts = ((len(issue.cycle) - threads, "task"), (threads, "thread"))
        who = " and ".join(count_of(count, one) for count, one in counts if count)
        return f"{who} wait for each other: {names}{more}"

    def evidence(self, issue: Deadlock) -> Iterator[str]:
        """Who waits for whose lock, one sentence a task."""
        yield from map(_wait_words, issue.cycle)
        for wait in issue.cycle:
            told = [f"made in {made_words(wait.made)}"] if wait.made else []
            told += [f"taken in {frame_words(wait.taken)}"] if wait.taken else []
            if wait.holds and told:
                yield f"{printable(wait.holds, _NAME_MAX)} was {' and '.join(told)}"
        if issue.waiting:
            yield f"{count_of(issue.waiting, 'other task')} can go on only when one of these does"

    def parts(self, issue: Deadlock) -> Iterator[Block]:
        """The stack of each task and thread of the cycle."""
        for wait in issue.cycle:
            words = _wait_words(wait)
            yield from stack_part(words if wait.is_thread else f"task {words}", wait.frames)

    def advice(self, issue: Deadlock) -> str | None:
        """By what its tasks wait for."""
        for_locks = sum(wait.holds is not None for wait in issue.cycle)
        if not for_locks:
            return _WAITED_FOR
        if for_locks < len(issue.cycle):
            return _OUTSIDE_THREAD if any(wait.is_thread for wait in issue.cycle) else _OUTSIDE
        return _TWICE if len(issue.cycle) == 1 else _IN_TURN

    def identity(self, issue: Deadlock) -> tuple[str, ...]:
        """The functions in which its tasks wait, in any order."""
        places = sorted(identity_of(wait.frames) for wait in issue.cycle)
        return tuple(part for place in places for part in place) or (f"tasks={len(issue.cycle)}",)

    def fitted(self, issue: Deadlock, session: Session) -> Deadlock:
        """With the line at which the first task of the cycle waits."""
        frames = issue.cycle[0].frames if issue.cycle else ()
        cycle = tuple(
            replace(wait, taken=wait.taken or entered_at(wait.frames, session)) if wait.holds else wait
            for wait in issue.cycle
        )
        return replace(issue, cycle=cycle, culprit=culprit_of(frames, session), cause=Cause.LOCK)


def _wait_words(wait: TaskWait) -> str:
    """`pay holds Lock 'a' and waits for Lock 'b'`."""
    holds = f"holds {printable(wait.holds, _NAME_MAX)} and " if wait.holds else ""
    name = f"{'the thread ' if wait.is_thread else ''}{printable(wait.task, _NAME_MAX)}"
    return f"{name} {holds}waits for {printable(wait.waits_for, _NAME_MAX)}"
