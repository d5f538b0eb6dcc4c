"""The bugs of all tests, of workers of pytest-xdist too, and the file of known ones."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, field
from pathlib import Path
from typing import Any

from loopcanary.late_dataclass import dataclass
from loopcanary.model import Stall
from loopcanary.model.units import format_duration
from loopcanary.wire.known import bugs_named
from loopcanary.words.text import count_of, printable

_TITLE_MAX = 200
_TESTS_SHOWN = 3
_BUGS_SHOWN = 10


@dataclass(slots=True, kw_only=True)
class Tallied:
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
    __test__ = False

    def __init__(self) -> None:
        self.bugs: dict[str, Tallied] = {}

    def add(self, stalls: Iterable[Stall], test: str) -> None:
        """Adds the stalls of the test with this id; empty: outside of tests."""
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
        return [asdict(bug) for bug in self.bugs.values()]

    def merge(self, plain: Iterable[dict[str, Any]]) -> None:
        """Adds what another process's `plain` gave."""
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
        return sorted(self.bugs.values(), key=lambda bug: (-bug.total_ns, bug.fingerprint))


def summary(bugs: list[Tallied], known: dict[str, str], *, shows_all: bool) -> Iterator[str]:
    """Lines for the end of the run; known bugs, by fingerprint, are those of the baseline."""
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


def read_known(path: Path) -> dict[str, str]:
    """Titles by fingerprint. ValueError: the file is missing, or not a baseline."""
    try:
        return bugs_named(path.read_bytes())
    except OSError as error:
        words = f"cannot be read ({error.strerror}): --loopcanary-write-baseline makes one"
        raise ValueError(f"the baseline {path} {words}") from error
    except ValueError as error:
        raise ValueError(f"the baseline {path} is {error}") from error


def write_known(path: Path, found: Iterable[Tallied]) -> None:
    groups = [{"fingerprint": one.fingerprint, "title": one.title} for one in found]
    groups.sort(key=lambda group: (group["title"], group["fingerprint"]))
    text = json.dumps({"schema": 1, "groups": groups, "issue_groups": []}, indent=1)
    path.write_text(text + "\n", encoding="utf-8")
