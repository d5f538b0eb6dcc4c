"""Runs a module of tests as `python -m` does, and writes down how each of its tests went.

    python suite_recorder.py RESULTS MODULE [ARGUMENT ...]

RESULTS gets one line of JSON a fact: ["a test's id", "begun"], then its outcome. The file is open only while
it is written: tests count descriptors. What was written is there after a crash, too.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import runpy
import sys
import unittest
from os import O_APPEND, O_CREAT, O_WRONLY  # tests replace parts of `os`
from os import close as close_file
from os import open as open_file
from os import write as write_file
from typing import Any

# What unittest's results, and trial's, are told, and what it is called here.
_OUTCOMES = {
    "startTest": "begun",
    "addSuccess": "passed",
    "addExpectedFailure": "passed",
    "addFailure": "failed",
    "addError": "failed",
    "addUnexpectedSuccess": "failed",
    "addSkip": "skipped",
}


def main() -> None:
    """Ends as the module ends."""
    results, module = sys.argv[1:3]
    sys.argv[:] = [module, *sys.argv[3:]]
    sys.path[0] = os.getcwd()  # noqa: PTH109 - as -m has it
    record = functools.partial(_write, os.path.abspath(results), module)  # noqa: PTH100 - no more than needed
    if module == "pytest":
        import pytest

        sys.exit(pytest.main(sys.argv[1:], plugins=[_PytestPlugin(record)]))
    _listen(unittest.TestResult, record)
    if module == "twisted.trial":
        _listen(importlib.import_module("twisted.trial.reporter").TestResult, record)
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _write(path: str, module: str, name: str, outcome: str) -> None:
    if name.startswith("__main__."):  # the test of a module that is the program
        name = module + name[len("__main__") :]
    line = json.dumps([name, outcome]) + "\n"
    file = open_file(path, O_WRONLY | O_APPEND | O_CREAT, 0o644)
    write_file(file, line.encode())
    close_file(file)


def _listen(results: Any, record: Any) -> None:
    """Has the class of results also record what it is told."""
    for method, outcome in _OUTCOMES.items():
        setattr(results, method, _recording(getattr(results, method), record, outcome))
    results.addSubTest = _recording_subtests(results.addSubTest, record)


def _recording(told: Any, record: Any, outcome: str) -> Any:
    @functools.wraps(told)
    def recording(self: Any, test: Any, *rest: Any, **more: Any) -> Any:
        record(test.id(), outcome)
        return told(self, test, *rest, **more)

    return recording


def _recording_subtests(told: Any, record: Any) -> Any:
    @functools.wraps(told)
    def recording(self: Any, test: Any, subtest: Any, error: Any) -> Any:
        if error is not None:
            record(test.id(), "failed")
        return told(self, test, subtest, error)

    return recording


class _PytestPlugin:
    """A test is its setup, its call and its teardown; the worst of them counts."""

    def __init__(self, record: Any) -> None:
        self._record = record

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._record(nodeid, "begun")

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" or report.outcome != "passed":
            self._record(report.nodeid, report.outcome)

    def pytest_collectreport(self, report: Any) -> None:
        if report.outcome == "failed":
            self._record(report.nodeid, report.outcome)


if __name__ == "__main__":
    main()
