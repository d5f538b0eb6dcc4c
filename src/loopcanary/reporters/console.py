"""Prints stalls on the watched program's stderr, never on stdout. Standard library only."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from loopcanary.model import Issue, IssueKind, Session, Stall, StallState
from loopcanary.protocols.plugins import TextScreen
from loopcanary.reporters.blocks import (
    IN_FULL,
    Tally,
    issue_line,
    later_line,
    repeat_line,
    summary_block,
)
from loopcanary.words.commands import reading

_QUIET_NS = 5_000_000_000
"""The same bug is printed again after this time at the earliest."""
_BUGS_MAX = 1_000
_OTHERS = "others"


class ConsoleReporter:
    """Prints a block for each new bug, a line now and then for one that repeats, a table at the end.

    Called on one thread only. Drops and counts blocks that stderr does not take. A report reads more in
    `store`. With `announce_clean` the end says, too, that there was no stall. `process` names this process
    if that is not plain; `folder` is the program's, if this is another process.
    """

    name = "console"

    def __init__(
        self,
        *,
        terminal: TextScreen,
        store: Path | None = None,
        folder: Path | None = None,
        announce_clean: bool = False,
        process: str = "",
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
        quiet: dict[str, int] | None = None,
    ) -> None:
        """`quiet`: until when a bug that was told is not told again, by its fingerprint; of several processes
        with one stderr the same."""
        self._terminal = terminal
        # Now, because a program may change to another folder.
        self._details = reading("report", () if store is None else (store,), folder)
        self._announce_clean = announce_clean
        self._process = process
        self._monotonic_ns = monotonic_ns
        self._tallies: dict[str, Tally] = {}
        self._quiet_until_ns = {} if quiet is None else quiet
        self._others: Counter[IssueKind] = Counter()
        """Issues of other kinds without a stall in them."""
        self._ongoing: dict[str, Issue] = {}
        """Issues by id, as they were shown while they lasted."""

    @property
    def dropped(self) -> int:
        return self._terminal.dropped

    def counts(self) -> dict[str, int]:
        return {"console_dropped": self.dropped} if self.dropped else {}

    def report(self, issue: Issue, repeated: int) -> None:
        """Shows each new stall in full, one of a known bug in short, other issues in a line."""
        block = IN_FULL.get(issue.kind.value)
        if block is None:
            self._others[issue.kind] += not getattr(issue, "stalls", ())
            if self._may_speak(issue.fingerprint):
                self._terminal.write(issue_line(issue, repeated, self._terminal.look(), self._process))
                self._quiet(issue.fingerprint)
            return
        shown = self._ongoing.get(issue.id)
        tally, is_new = self._count(issue)
        look = self._terminal.look()
        if shown is not None:
            self._terminal.write(later_line(issue, shown, look, self._process))
        elif is_new and repeated == 0 and issue.fingerprint not in self._quiet_until_ns:
            self._terminal.write(block(issue, look, self._process))
            self._quiet(issue.fingerprint)
        elif issue.state is StallState.ONGOING or self._may_speak(issue.fingerprint):
            self._terminal.write(repeat_line(issue, tally, look, self._process))
            self._quiet(issue.fingerprint)

    def recall(self, stall: Stall) -> None:
        """Counts a stall that another process has reported."""
        self._count(stall)

    def close(self, session: Session, stalls: Iterable[Stall]) -> None:  # noqa: ARG002 - counted as they came
        # A process without a loop has nothing to announce; its children may have stalled.
        is_clean = self._announce_clean and any(loop.turns for loop in session.loops)
        others = +self._others
        if self._tallies or others or is_clean:
            tallies, look = list(self._tallies.values()), self._terminal.look()
            block = summary_block(tallies, session, self._details, look, self._process, others=others)
            self._terminal.write(block)

    def _count(self, stall: Issue) -> tuple[Tally, bool]:
        """Adds the stall to its bug's tally; returns that, and whether it is the bug's first stall."""
        shown = self._ongoing.pop(stall.id, None)
        if stall.state is StallState.ONGOING:
            self._ongoing[stall.id] = stall
        if shown is not None:
            self._take_back(shown)
        tally = self._tallies.get(stall.fingerprint)
        is_new = tally is None
        if tally is None:
            # Endless new fingerprints must not take endless memory.
            key = stall.fingerprint if len(self._tallies) < _BUGS_MAX else _OTHERS
            tally = self._tallies.setdefault(key, Tally())
        tally.add(stall)
        return tally, is_new

    def _take_back(self, stall: Issue) -> None:
        tally = self._tallies.get(stall.fingerprint)
        if tally is not None:
            tally.take_back(stall)
            if not tally.count:
                del self._tallies[stall.fingerprint]

    def _may_speak(self, fingerprint: str) -> bool:
        return self._monotonic_ns() >= self._quiet_until_ns.get(fingerprint, 0)

    def _quiet(self, fingerprint: str) -> None:
        if len(self._quiet_until_ns) < _BUGS_MAX or fingerprint in self._quiet_until_ns:
            self._quiet_until_ns[fingerprint] = self._monotonic_ns() + _QUIET_NS
