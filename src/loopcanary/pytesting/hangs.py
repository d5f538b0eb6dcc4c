"""Tests that hang: a process beside shows their threads, which needs neither the GIL nor a signal.

PYTEST_DONT_REWRITE: nothing is asserted here.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Generator
from typing import Any

import pytest

from loopcanary.pytesting.limits import duration_ns


class HangingTests:
    """Hooks of pytest that report each test's begin and end to the process beside (hang_helper)."""

    __test__ = False

    def __init__(self, helper: subprocess.Popen[bytes]) -> None:
        self._helper = helper

    @classmethod
    def of(cls, after: str) -> HangingTests:
        """Starts the process beside. UsageError: `after` is not a duration."""
        try:
            after_ns = duration_ns(after, "--loopcanary-hang")
        except ValueError as error:
            raise pytest.UsageError(str(error)) from error
        command = [
            sys.executable,
            "-P",
            "-m",
            "loopcanary.pytesting.hang_helper",
            str(os.getpid()),
            str(after_ns),
        ]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
        # Standard error is the terminal still: pytest captures from the first test on.
        return cls(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=2, env=environment))  # noqa: S603 - ours

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self._tell(item.nodeid)
        try:
            return (yield)
        finally:
            self._tell("")

    def pytest_unconfigure(self) -> None:
        with contextlib.suppress(OSError):
            if self._helper.stdin is not None:
                self._helper.stdin.close()
        self._helper.wait()

    def _tell(self, test: str) -> None:
        """Reports the test that runs now; empty: none does."""
        stdin = self._helper.stdin
        if stdin is not None:
            with contextlib.suppress(OSError):  # a helper that is gone shows nothing: no test's fault
                stdin.write(f"{test!a}\n".encode())
                stdin.flush()
