"""Rings the terminal of the watched program. Drain thread; never waits, never raises."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from loopcanary.model import Issue, Session, Stall
from loopcanary.reporters.terminal import Terminal

_BELL = "\a"
_APART_NS = 1_000_000_000
"""A row of bells says no more than one."""


class Bell:
    """One ring for a stall that is long enough: of each bug one in `every_ns`. Only a terminal rings: in a
    file or a pipe the character would stay."""

    name = "bell"

    def __init__(
        self,
        *,
        from_ns: int,
        every_ns: int,
        terminal: Terminal | None = None,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._from_ns = from_ns
        self._every_ns = every_ns
        self._terminal = terminal or Terminal()
        self._monotonic_ns = monotonic_ns
        self._last: tuple[int, dict[str, int]] = (-_APART_NS, {})

    def report(self, issue: Issue, repeated: int) -> None:  # noqa: ARG002 - time says it
        """Rings, or does not."""
        if (
            not isinstance(issue, Stall)
            or issue.duration_ns < self._from_ns
            or not self._terminal.is_terminal()
        ):
            return
        now_ns, (last_ns, by_bug) = self._monotonic_ns(), self._last
        before_ns = by_bug.get(issue.fingerprint, now_ns - self._every_ns)
        if now_ns - last_ns < _APART_NS or now_ns - before_ns < self._every_ns:
            return
        self._terminal.write(_BELL)
        kept = {bug: at for bug, at in by_bug.items() if now_ns - at < self._every_ns}
        self._last = now_ns, kept | {issue.fingerprint: now_ns}

    def close(self, session: Session, stalls: Iterable[Stall]) -> None:
        """The end is no stall."""
