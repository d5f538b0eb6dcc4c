"""`--fail-on-stall`: a program that would end with status 0 ends with 70 where a stall was recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from loopcanary.model import Issue, IssueKind, Session, Stall
from loopcanary.model.config import FAILED_ON_STALL


class ExitStatusReporter:
    """Asks the native side to replace an exit status of 0. Drain thread."""

    name = "exit status"

    def __init__(self, fail_exit: Callable[[int], object]) -> None:
        self._fail_exit = fail_exit
        self._asked = False

    def report(self, issue: Issue, repeated: int) -> None:  # noqa: ARG002 - one stall is enough
        if not self._asked and issue.kind == IssueKind.STALL:
            self._asked = True
            self._fail_exit(FAILED_ON_STALL)

    def close(self, session: Session, stalls: Iterable[Stall]) -> None:
        """Nothing is left to do."""
