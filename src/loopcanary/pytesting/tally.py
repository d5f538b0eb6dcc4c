"""What stalled in all tests, bug by bug; workers of pytest-xdist send theirs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, field
from typing import TYPE_CHECKING, Any

from loopcanary.late_dataclass import dataclass
from loopcanary.model.units import format_duration
from loopcanary.words.text import count_of, printable

if TYPE_CHECKING:
    from loopcanary.model import Stall

_TITLE_MAX = 200
_TESTS_SHOWN = 3
_BUGS_SHOWN = 10


@dataclass(slots=True, kw_only=True)
class Tallied:
    """One bug."""

    fingerprint: str
    title: str
    cause: str
    advice: str = ""
    count: int = 0
    total_ns: int = 0
    max_ns: int = 0
    tests: dict[str, int] = field(default_factory=dict)
    """Stalls by id of the test; empty id: outside of tests."""


class TestTally:
    """Bugs by fingerprint."""

    __test__ = False

    def __init__(self) -> None:
        self.bugs: dict[str, Tallied] = {}

    def add(self, stalls: Iterable[Stall], test: str) -> None:
        """Stalls of one test, by its id; empty: of none."""
        for stall in stalls:
            self._add(stall, test)

    def _add(self, stall: Stall, test: str) -> None:
        bug = self.bugs.get(stall.fingerprint)
        if bug is None:
            bug = self.bugs[stall.fingerprint] = Tallied(
                fingerprint=stall.fingerprint,
                title=printable(stall.title, _TITLE_MAX),
                cause=stall.cause.value,
                advice=printable(stall.advice, 4 * _TITLE_MAX) if stall.advice else "",
            )
        bug.count += 1
        bug.total_ns += stall.duration_ns
        bug.max_ns = max(bug.max_ns, stall.duration_ns)
        bug.tests[test] = bug.tests.get(test, 0) + 1

    def plain(self) -> list[dict[str, Any]]:
        """For another process."""
        return [asdict(bug) for bug in self.bugs.values()]

    def merge(self, plain: Iterable[dict[str, Any]]) -> None:
        """What `plain` gave there."""
        for fields in plain:
            new = Tallied(**fields)
            bug = self.bugs.setdefault(new.fingerprint, new)
            if bug is not new:
                bug.count += new.count
                bug.total_ns += new.total_ns
                bug.max_ns = max(bug.max_ns, new.max_ns)
                for test, count in new.tests.items():
                    bug.tests[test] = bug.tests.get(test, 0) + count

    def ranked(self) -> list[Tallied]:
        """Most time first."""
        return sorted(self.bugs.values(), key=lambda bug: (-bug.total_ns, bug.fingerprint))


def summary(bugs: list[Tallied], known: dict[str, str], *, shows_all: bool) -> Iterator[str]:
    """Lines for the end of the run. `known`: the baseline's bugs, by fingerprint."""
    shown = bugs if shows_all else bugs[:_BUGS_SHOWN]
    for bug in shown:
        mark = " (known)" if bug.fingerprint in known else ""
        length = f"{format_duration(bug.total_ns)} in {count_of(bug.count, 'stall')}"
        yield f"{length}, the longest {format_duration(bug.max_ns)}  {bug.cause}: {bug.title}{mark}"
        yield f"    in {_tests(bug)}"
        if bug.advice:
            yield f"    try: {bug.advice}"
    if len(shown) < len(bugs):
        yield f"and {count_of(len(bugs) - len(shown), 'more bug')}; -vv shows all"
    for fingerprint in known.keys() - {bug.fingerprint for bug in bugs}:
        yield f"gone: {printable(known[fingerprint], _TITLE_MAX)} ({fingerprint}), which is in the baseline"


def _tests(bug: Tallied) -> str:
    most = sorted(bug.tests, key=lambda test: (-bug.tests[test], test))
    names = [printable(test, _TITLE_MAX) or "no test (collection)" for test in most[:_TESTS_SHOWN]]
    more = len(most) - len(names)
    return ", ".join(names) + (f" and {count_of(more, 'more test')}" if more else "")
