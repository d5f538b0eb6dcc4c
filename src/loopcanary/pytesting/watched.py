"""The tests of one pytest process while they are watched: hooks of pytest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from loopcanary.protocols.screens import Look
from loopcanary.pytesting.baseline import read_known, write_known
from loopcanary.pytesting.limits import duration_ns, limit_of
from loopcanary.pytesting.tally import TestTally, summary
from loopcanary.pytesting.watch import TestsWatch
from loopcanary.reporters.blocks import stall_block
from loopcanary.words.text import count_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from loopcanary.model import Stall

_DEFAULT_NS = 100_000_000
_WIDTH = 100
_OUTPUT = "loopcanary_bugs"
"""What a worker of pytest-xdist sends them under."""


class StallsSeen:
    """What stalled in the test that runs: the fixture `loopcanary`."""

    def __init__(self, watch: TestsWatch) -> None:
        self._watch = watch
        self._stalls: list[Stall] = []

    def begin(self) -> None:
        """Another test begins."""
        self._stalls.clear()

    def take(self) -> list[Stall]:
        """All up to now, those that were not yet looked at last."""
        self._stalls += self._watch.new_stalls()
        return self._stalls

    @property
    def stalls(self) -> list[Stall]:
        """The stalls of this test up to now, oldest first."""
        return list(self.take())

    def assert_no_stall(self, longer_than: str = "0ms") -> None:
        """AssertionError, with the stalls of this test as long as that; ValueError: that is no duration."""
        __tracebackhide__ = True
        least_ns = duration_ns(longer_than, "assert_no_stall")
        found = [stall for stall in self.stalls if stall.duration_ns >= least_ns]
        if found:
            raise AssertionError(told(found))


class WatchedTests:
    """Registered with pytest where the watch is asked for."""

    __test__ = False

    def __init__(
        self,
        *,
        fail_ns: int | None,
        threshold_ns: int,
        watch: TestsWatch,
        known: dict[str, str],
        writes: str | None,
        runs_tests: bool,
    ) -> None:
        """`fail_ns`: what fails a test; None: nothing does. `writes`: file of the new baseline."""
        self._fail_ns = fail_ns
        self._threshold_ns = threshold_ns
        self._watch = watch
        self._known = known
        self._writes = writes
        self._runs_tests = runs_tests
        self._tally = TestTally()
        self.seen = StallsSeen(watch)

    @classmethod
    def of(cls, config: pytest.Config) -> WatchedTests:
        """As the options and the configuration say. UsageError where one is wrong."""

        def option(name: str) -> str | None:
            return config.getoption(f"loopcanary_{name}") or config.getini(f"loopcanary_{name}") or None

        fail, threshold, baseline = option("fail"), option("threshold"), option("baseline")
        try:
            fail_ns = None if fail is None else duration_ns(fail, "--loopcanary-fail")
            threshold_ns = min(_DEFAULT_NS, fail_ns or _DEFAULT_NS)
            if threshold is not None:
                threshold_ns = duration_ns(threshold, "--loopcanary-threshold")
            known = {} if baseline is None else read_known(config.invocation_params.dir / baseline)
        except ValueError as error:
            raise pytest.UsageError(str(error)) from error
        if config.getoption("forked", False):
            raise pytest.UsageError(
                "--forked runs each test in a child process, where loopcanary sees no stall: leave one "
                "of them out; workers of pytest-xdist (-n) are watched"
            )
        if fail_ns is not None and fail_ns < threshold_ns:
            raise pytest.UsageError(f"--loopcanary-fail={fail} is below --loopcanary-threshold={threshold}")
        return cls(
            fail_ns=fail_ns,
            threshold_ns=threshold_ns,
            watch=TestsWatch(threshold_ns, option("store")),
            known=known,
            writes=config.getoption("loopcanary_write_baseline"),
            runs_tests=hasattr(config, "workerinput") or not config.getoption("numprocesses", None),
        )

    def start(self) -> None:
        """A process that only hands tests to workers (pytest-xdist) has no loop to watch."""
        if self._runs_tests:
            self._watch.start()

    def stop(self) -> None:
        self._watch.stop()

    # ---- hooks ----------------------------------------------------------------------------------

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """A marker may ask for less than the threshold, and for a child process (pytest-forked)."""
        forked = sum(item.get_closest_marker("forked") is not None for item in session.items)
        if forked and session.config.pluginmanager.has_plugin("pytest_forked"):
            note = f"{count_of(forked, 'test')} marked `forked`: loopcanary sees no stall in a child process"
            session.config.issue_config_time_warning(pytest.PytestWarning(note), stacklevel=2)
        self._leave_tests()
        try:
            limits = [limit_of(item, self._fail_ns).max_ns for item in session.items]
        except ValueError as error:
            raise pytest.UsageError(str(error)) from error
        self._watch.use(min([self._threshold_ns, *(limit for limit in limits if limit is not None)]))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self._leave_tests()
        return (yield from self._phase(item))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        return (yield from self._phase(item))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, Any]:
        return (yield from self._phase(item))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Before pytest-xdist sends what its worker has found."""
        self._leave_tests()
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[_OUTPUT] = json.dumps(self._tally.plain())  # execnet takes no subclass of str

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A worker of pytest-xdist has ended."""
        self._tally.merge(json.loads(getattr(node, "workeroutput", {}).get(_OUTPUT, "[]")))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        bugs = self._tally.ranked()
        write = terminalreporter.write_line
        if bugs or self._known:
            terminalreporter.section("stalls of event loops")
            shows_all = terminalreporter.config.get_verbosity() > 1
            for line in summary(bugs, self._known, shows_all=shows_all):
                write(line)
        if self._writes is not None:
            write_known(Path(self._writes), bugs)
            write(f"{count_of(len(bugs), 'bug')} written to {self._writes}")

    # ---- a test ---------------------------------------------------------------------------------

    def _phase(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Setup, call or teardown. Fails where it stalled a loop for too long, and nothing else failed."""
        before = len(self.seen.take())
        try:
            result = yield
        finally:
            stalls = self.seen.take()[before:]
            self._tally.add(stalls, item.nodeid)
        broken = limit_of(item, self._fail_ns).broken_by(stalls, frozenset(self._known))
        if broken:
            pytest.fail(told(broken), pytrace=False)
        return result

    def _leave_tests(self) -> None:
        """What stalled up to now was no test."""
        self.seen.begin()
        self._tally.add(self.seen.take(), "")
        self.seen.begin()


def told(stalls: Iterable[Stall]) -> str:
    """The first as the console shows it, the others counted."""
    first, *others = stalls
    words = stall_block(first, Look(width=_WIDTH, folder=str(Path.cwd()))).rstrip("\n")
    return words + (f"\nand {count_of(len(others), 'shorter stall')}" if others else "")
