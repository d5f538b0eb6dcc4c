"""Rings the terminal of the watched program. Drain thread; never waits, never raises."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable

from loopcanary.model import Issue, IssueKind, Session, Stall
from loopcanary.protocols.plugins import TextScreen

_BELL = "\a"
_RUNG_FOR_MAX = 100
_APART_NS = 1_000_000_000
"""A row of bells says no more than one."""


class Bell:
    """Rings for an issue that is long enough, once in `every_ns` for each bug. Only on a terminal: in a file
    or a pipe the character would stay."""

    name = "bell"

    def __init__(
        self,
        *,
        terminal: TextScreen,
        from_ns: int,
        every_ns: int,
        kinds: Collection[IssueKind] = (),
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._from_ns = from_ns
        self._every_ns = every_ns
        self._kinds = kinds
        self._rung_for: list[str] = []
        """Ids of the last issues that rang; issues made of them do not ring again."""
        self._terminal = terminal
        self._monotonic_ns = monotonic_ns
        self._last: tuple[int, dict[str, int]] = (-_APART_NS, {})

    def report(self, issue: Issue, repeated: int) -> None:  # noqa: ARG002 - time says it
        if (
            (self._kinds and issue.kind not in self._kinds)
            or issue.felt_ns < self._from_ns
            or not self._terminal.is_terminal()
            or any(one in self._rung_for for one in issue.stalls)
        ):
            return
        self._rung_for = [*self._rung_for, issue.id][-_RUNG_FOR_MAX:]
        now_ns, (last_ns, by_bug) = self._monotonic_ns(), self._last
        before_ns = by_bug.get(issue.fingerprint, now_ns - self._every_ns)
        if now_ns - last_ns < _APART_NS or now_ns - before_ns < self._every_ns:
            return
        self._terminal.write(_BELL)
        kept = {bug: at for bug, at in by_bug.items() if now_ns - at < self._every_ns}
        self._last = now_ns, kept | {issue.fingerprint: now_ns}

    def close(self, session: Session, stalls: Iterable[Stall]) -> None:
        """The end of a session rings no bell."""
