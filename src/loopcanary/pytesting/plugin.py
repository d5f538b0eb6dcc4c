"""The pytest plugin: `pytest --loopcanary` watches the event loops of all tests. See docs/how-to/pytest.md.

PYTEST_DONT_REWRITE: pytest loads this before it rewrites asserts; there is none here.

Unless it is asked for it only has options: nothing else is loaded.
"""

from __future__ import annotations

from typing import Any

import pytest

_MARKER = (
    'loopcanary(max_stall="50ms", allow=["json.loads"]): the test fails where it stalls an '
    "event loop for that long or longer; allow: calls that may stall it all the same"
)
_KEY = pytest.StashKey[Any]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options, and `loopcanary*` of the configuration file."""
    group = parser.getgroup("loopcanary", "stalls of event loops")
    group.addoption("--loopcanary", action="store_true", help="Watch the event loops of all tests.")
    for name, metavar, words in (
        ("fail", "DURATION", "Fail a test that stalls a loop for this long or longer: 50ms."),
        ("threshold", "DURATION", "A longer callback is a stall. Default: 100ms, or less if `fail` is less."),
        ("store", "DIR", "Keep the stalls in this store, for `loopcanary report`."),
        ("baseline", "FILE", "File of known bugs, which fail no test."),
        ("write-baseline", "FILE", "Write the bugs of this run to this file, as known bugs."),
        ("hang", "DURATION", "Show all threads of a test that runs for this long: 30s. The test goes on."),
    ):
        group.addoption(f"--loopcanary-{name}", metavar=metavar, help=words)
    parser.addini("loopcanary", "As --loopcanary.", type="bool", default=False)
    for name in ("fail", "threshold", "store", "baseline", "hang"):
        parser.addini(f"loopcanary_{name}", f"As --loopcanary-{name}.")


def pytest_configure(config: pytest.Config) -> None:
    """Starts to watch, if it is asked for."""
    config.addinivalue_line("markers", _MARKER)
    _configure_hang(config)
    wanted = [
        config.getoption(f"loopcanary_{name}") for name in ("fail", "store", "baseline", "write_baseline")
    ]
    if not (config.getoption("loopcanary") or config.getini("loopcanary") or any(wanted)):
        return
    from loopcanary.pytesting.watched import WatchedTests

    config.stash[_KEY] = session = WatchedTests.of(config)
    config.pluginmanager.register(session, "loopcanary-session")
    session.start()


def _configure_hang(config: pytest.Config) -> None:
    after = config.getoption("loopcanary_hang") or config.getini("loopcanary_hang")
    runs_tests = hasattr(config, "workerinput") or not config.getoption("numprocesses", None)
    if after and runs_tests:  # else workers of pytest-xdist do
        from loopcanary.pytesting.hangs import HangingTests

        config.pluginmanager.register(HangingTests.of(after), "loopcanary-hangs")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Ends the watch."""
    session = config.stash.get(_KEY, None)
    if session is not None:
        del config.stash[_KEY]
        session.stop()


@pytest.fixture
def loopcanary(request: pytest.FixtureRequest) -> Any:
    """The stalls of this test: `stalls`, `assert_no_stall("50ms")`. Skips the test if nothing is watched."""
    session = request.config.stash.get(_KEY, None)
    if session is None:
        pytest.skip("needs pytest --loopcanary")
    return session.seen
