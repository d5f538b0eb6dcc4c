from __future__ import annotations

import importlib.util
import signal
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# pytest keeps what it makes of each module, for the next pass too: to make it takes ten seconds. Programs
# that tests start go by the environment.
sys.dont_write_bytecode = False

# How fast an example is made or run says how busy the machine is, not whether the code is right.
settings.register_profile("loopcanary", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# A landing is judged by its change, and not by which examples hypothesis thinks of on the day.
settings.register_profile("ci", settings.get_profile("loopcanary"), derandomize=True)
settings.register_profile("few", settings.get_profile("ci"), max_examples=20)
settings.load_profile("loopcanary")

pytest_plugins = ["tests.costs", "tests.flight_files", "tests.tiers"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    needing = [item for item in items if "native" in item.keywords]
    if needing and importlib.util.find_spec("loopcanary._native") is None:
        skip = pytest.mark.skip(reason="this loopcanary has no C core")
        for item in needing:
            item.add_marker(skip)


def pytest_make_parametrize_id(val: object) -> str | None:
    """No file's bytes in a test's name: the workers of pytest-xdist have to agree on it."""
    if isinstance(val, str | bytes) and len(val) > 100:
        return f"{type(val).__name__} of {len(val)}"
    return None


_LEFT_BEHIND = ("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What a failed test leaves behind, a program or a socket, is warned of when it is collected: in the
    middle of another test, which did nothing wrong."""
    report = yield
    if report.failed and _LEFT_BEHIND[0] not in item.config.getini("filterwarnings"):
        for line in _LEFT_BEHIND:
            item.config.addinivalue_line("filterwarnings", line)
    return report


@pytest.fixture(scope="session")
def tree() -> Path:
    """The project's folder: sources that are not installed, such as native/ and docs/."""
    return Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def package_path() -> Path:
    """The folder from which child programs import the package under test: where it is installed, or src."""
    spec = importlib.util.find_spec("loopcanary")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).resolve().parents[1]


def pytest_configure() -> None:
    """A shell's background job ignores Control-C, one under nohup the end of its terminal: so would every
    program that the tests start."""
    for name in ("SIGINT", "SIGHUP", "SIGQUIT", "SIGTERM"):
        number = getattr(signal, name, None)  # those that the system has
        if number is not None and signal.getsignal(number) is signal.SIG_IGN:
            default = signal.default_int_handler if name == "SIGINT" else signal.SIG_DFL
            signal.signal(number, default)
