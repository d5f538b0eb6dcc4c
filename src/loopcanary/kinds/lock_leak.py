"""Locks that were not released."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from loopcanary.document.makers import facts, name
from loopcanary.document.parts import Block, Facts
from loopcanary.kinds.places import culprit_of, identity_of, made_words, stack_part
from loopcanary.model import Session
from loopcanary.model.issues.locks import WAITERS_MAX, LockLeak
from loopcanary.model.stall import Cause
from loopcanary.protocols.kinds import Kind
from loopcanary.words.text import count_of, printable

_NAME_MAX = 120
_WAITERS_SHOWN = 5


class LockLeakKind(Kind[LockLeak]):
    """A lock that its task did not release, for which others wait."""

    issue_class = LockLeak
    words = "lock not released"
    list_words = "locks not released"
    is_found_early = True

    def title(self, issue: LockLeak) -> str:
        """`Lock 'Cache.lock' was not released: 3 tasks wait for it`."""
        waiting = f"{count_of(issue.waiting, 'task')} wait{'s' if issue.waiting == 1 else ''}"
        return f"{printable(issue.primitive, _NAME_MAX)} was not released: {waiting} for it"

    def evidence(self, issue: LockLeak) -> Iterator[str]:
        """Who acquired it, and who waits."""
        holder = printable(issue.acquired_by, _NAME_MAX)
        if issue.has_ended:
            yield f"the task {holder} acquired it, and ended without releasing it"
        else:
            yield f"the task {holder} acquired it, did not release it, and now waits for it itself"
        if issue.made:
            yield f"the lock was made in {made_words(issue.made)}"
        names = ", ".join(printable(wait.task, _NAME_MAX) for wait in issue.waiters[:4])
        more = ", ..." if issue.waiting > 4 else ""
        yield f"{count_of(issue.waiting, 'task')} wait for it in line: {names}{more}"

    def figures(self, issue: LockLeak) -> Facts:
        state = "has ended" if issue.has_ended else "waits for it itself"
        return facts(("lock", name(issue.primitive, 120)), ("acquired by", f"{issue.acquired_by} ({state})"))

    def parts(self, issue: LockLeak) -> Iterator[Block]:
        """Where it was acquired, and where the first in line wait."""
        yield from stack_part("acquired here, and never released", issue.acquired)
        for wait in issue.waiters[:_WAITERS_SHOWN]:
            yield from stack_part(f"task {wait.task} waits here", wait.frames)

    def identity(self, issue: LockLeak) -> tuple[str, ...]:
        """The function that acquired it."""
        return identity_of(issue.acquired) or (f"lock={issue.primitive}",)

    def fitted(self, issue: LockLeak, session: Session) -> LockLeak:
        """With the line that acquired it."""
        culprit, waiters = culprit_of(issue.acquired, session), issue.waiters[:WAITERS_MAX]
        return replace(issue, culprit=culprit, cause=Cause.LOCK, waiters=waiters)
