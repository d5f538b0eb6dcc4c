"""Which tests run where. docs/internals/tests.md says what each tier guards.

A key is a path in tests/, or of one test in it. Each has its reason. Run as a program with the name of a tier
it prints that tier's paths.
"""

from __future__ import annotations

import sys
from itertools import chain
from pathlib import Path

import pytest

HERE = Path(__file__).parent

EVERY_PYTHON = {
    "asyncio_probe": "stands in for methods of asyncio, which change",
    "budgets": "counts allocations and system calls of the interpreter's own doing",
    "cli/test_attach.py": "sys.remote_exec is there from 3.14 on",
    "cli/test_dump.py": "reads another interpreter's frames",
    "cli/test_dump_tasks.py": "reads another interpreter's tasks",
    "cli/test_run.py": "starts programs in the interpreter's ways",
    "diagnosis/test_calls.py": "asks the interpreter for a call's columns",
    "engine": "threads, forks, exits and finalizers of the interpreter",
    "engine_facts": "asks the interpreter about itself",
    "keeper_native": "a type of the extension, and its threads beside forks and exits",
    "locks": "reads coroutines of the interpreter, and asyncio's classes",
    "methods": "sys.monitoring, and profile functions before it",
    "native_walker": "reads the interpreter's structures",
    "packaging/test_install.py::test_the_c_core_loads_where_it_was_built": "the wheel is for this version",
    "packaging/test_wheel.py::test_the_native_wheel_is_for_one_python_and_platform": "as test_install.py",
    "packaging/test_children.py": "site, multiprocessing and the doors of attach are the interpreter's",
    "packaging/test_startup.py": "runs before the interpreter's site is through",
    "packaging/test_startup_file.py": "runs before the interpreter's site is through",
    "patches": "types, imports and modules of the interpreter, as they were",
    "portable/test_programs.py": "sees frames as Python shows them",
    "program/test_before.py": "whole programs, with what their stalls are called",
    "program/test_circles.py": "as program/test_before.py",
    "program/test_cpython_suite.py": "asyncio's own, of this version",
    "program/test_detection.py::TestTheNativeEngine": "every cause, read from the interpreter's structures",
    "program/test_lazy_imports.py": "PEP 810 is there from 3.15 on",
    "program/test_killed.py": "as program/test_before.py",
    "program/test_waits.py": "as program/test_before.py",
    "startup/test_programs.py": "importlib of the interpreter, and its site module",
    "store/test_trouble.py": "sqlite3 of the interpreter, killed at any moment",
    "zoo/test_other_loops.py::test_a_kind_and_a_control_are_judged_as_they_are": "one stall of each loop",
    "zoo/test_short.py": "eight stalls of asyncio with known truth",
}

EVERY_LAYOUT = {
    "cli/test_dump.py": "the interpreter's structures, read from outside",
    "cli/test_dump_tasks.py": "as test_dump.py",
    "engine/test_children.py": "forks of the interpreter, and what their children watch",
    "engine/test_fork_warning.py": "counts threads at a fork, as this version does",
    "engine/test_forked_pages.py": "what a fork leaves to its child",
    "native_walker": "the interpreter's structures, read from inside",
}
"""Of EVERY_PYTHON, what a release of CPython breaks first."""

ALONE = {
    "loops/test_blocks.py": "short callbacks are a burst only where the host stops none of them",
    "loops/uvloop/test_callbacks.py::test_many_short_callbacks_are_a_burst": "as loops/test_blocks.py",
    "native_walker/test_churn.py": "samples threads at 1 kHz while they compute",
    "native_walker/test_churn_watched.py": "samples threads at 1 kHz while they compute",
    "program/test_cpython_suite.py": "runs two processes; some of CPython's tests are timed",
    "program/test_detection.py": "each cause is strict where the host had no part in a stall",
}

MARKS = {"every_python": EVERY_PYTHON, "every_layout": EVERY_LAYOUT, "alone": ALONE}


def is_in(nodeid: str, key: str) -> bool:
    """Whether a test, by pytest's id of it, is what a key names, or in it."""
    return nodeid.startswith(f"tests/{key}") and nodeid[len(f"tests/{key}") :][:1] in {"", "/", ":", "["}


def missing_keys() -> list[str]:
    """Those that name no file or folder, or no test in the file."""
    return [key for key in chain(*MARKS.values()) if not _names_something(*key.split("::"))]


def _names_something(path: str, name: str = "") -> bool:
    there = HERE / path
    return there.exists() and (not name or name in there.read_text(encoding="utf-8"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if missing := missing_keys():
        raise pytest.UsageError(f"tests/tiers.py names what is not there: {', '.join(missing)}")
    for item in items:
        for mark, keys in MARKS.items():
            if any(is_in(item.nodeid, key) for key in keys):
                item.add_marker(mark)
        if (group := _group_of(item)) is not None:
            item.add_marker(pytest.mark.xdist_group(group.relative_to(HERE).as_posix()))
    if hasattr(config, "workerinput"):  # what one worker has to do in a row begins first
        items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)


@pytest.hookimpl(specname="pytest_collection_modifyitems", trylast=True)
def see_to_groups(config: pytest.Config, items: list[pytest.Item]) -> None:
    """pytest-xdist tells one worker's tests by what it adds to their ids."""
    if not getattr(config.option, "loadgroup", False):
        return
    if any(item.get_closest_marker("xdist_group") and "@" not in item.nodeid for item in items):
        raise pytest.UsageError("this pytest-xdist and this pytest keep no group of tests with one worker")


def _group_of(item: pytest.Item) -> Path | None:
    """The file or folder whose tests share what a fixture makes once: a run of a program, a build."""
    fixtures = getattr(item, "_fixtureinfo", None)
    found = fixtures.name2fixturedefs.values() if fixtures is not None else ()
    scopes = {one.scope for definitions in found for one in definitions}
    if "package" in scopes:
        return item.path.parent
    return item.path if "module" in scopes else None


if __name__ == "__main__":
    print(*(f"tests/{key}" for key in MARKS[sys.argv[1]]))  # noqa: T201 - for the Makefile
