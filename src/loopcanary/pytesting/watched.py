"""The tests of one pytest process while they are watched: hooks of pytest."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from loopcanary.model import Stall
from loopcanary.pytesting.limits import duration_ns, limit_of, told
from loopcanary.pytesting.tally import TestTally, read_known, summary, write_known
from loopcanary.pytesting.watch import TestsWatch
from loopcanary.words.text import count_of

_DEFAULT_NS = 100_000_000
_OUTPUT = "loopcanary_bugs"
"""The key under which a worker of pytest-xdist sends them."""


class StallsSeen:
    """The stalls of the test that runs: the fixture `loopcanary`."""

    def __init__(self, watch: TestsWatch) -> None:
        self._watch = watch
        self._stalls: list[Stall] = []

    def begin(self) -> None:
        self._stalls.clear()

    def take(self) -> list[Stall]:
        """All stalls up to now, the new ones last."""
        self._stalls += self._watch.new_stalls()
        return self._stalls

    @property
    def stalls(self) -> list[Stall]:
        return list(self.take())

    def assert_no_stall(self, longer_than: str = "0ms") -> None:
        """AssertionError names the stalls of this test that are as long. ValueError: not a duration."""
        __tracebackhide__ = True
        least_ns = duration_ns(longer_than, "assert_no_stall")
        found = [stall for stall in self.stalls if stall.duration_ns >= least_ns]
        if found:
            raise AssertionError(told(found))


class WatchedTests:
    """The hooks of pytest, registered if the options ask for the watch."""

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
        """A stall of `fail_ns` fails its test; None: none does. `writes` is the new baseline's file."""
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
        """Reads options and configuration. UsageError: one of them is wrong."""

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
        """Starts the watch, unless this process only hands tests to workers (pytest-xdist)."""
        if self._runs_tests:
            self._watch.start()

    def stop(self) -> None:
        self._watch.stop()

    # ---- hooks ----------------------------------------------------------------------------------

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Reads the markers, which may ask for a lower threshold, or a child process (pytest-forked)."""
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
        """Gives pytest-xdist the bugs to send, before it sends a worker's output."""
        self._leave_tests()
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[_OUTPUT] = json.dumps(self._tally.plain())  # execnet takes no subclass of str

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Takes the bugs of a worker of pytest-xdist that has ended."""
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
        """Runs setup, call or teardown; fails if it stalled a loop for too long, and nothing else failed."""
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
        """Counts the stalls up to now outside of tests."""
        self.seen.begin()
        self._tally.add(self.seen.take(), "")
        self.seen.begin()
