"""`pytest --loopcanary-hang`, in test runs of its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.pytesting.test_plugin import run, started

HANGS = """
import threading, time
from pathlib import Path

def test_hangs_and_goes_on():
    threading.Thread(target=threading.Event().wait, name="a worker", daemon=True).start()
    while not Path("seen").exists():  # made once the process beside has shown the threads
        time.sleep(0.01)

def test_quick():
    pass
"""


def test_a_test_that_hangs_is_shown_and_goes_on(tmp_path: Path) -> None:
    options = ("--loopcanary-hang=300ms", "--durations=0", "--durations-min=0.2")
    with started(tmp_path, *options, text=HANGS) as process:
        words = ""
        while "time.sleep(0.01)" not in words:
            line = process.stderr.readline()
            assert line, words
            words += line
        (tmp_path / "seen").touch()
        rest, output = process.stderr.read(), process.stdout.read()
    assert "test_cases.py::test_hangs_and_goes_on' has run for 0.3 s and goes on; its threads:" in words
    assert "a worker" in words + rest
    if not re.search(r"\ds (setup|call|teardown) +test_cases\.py::test_quick", output):  # unless it took long
        assert "test_quick' has run" not in rest
    assert "2 passed" in output
    assert process.returncode == 0


@pytest.mark.parametrize("option", ["--loopcanary-hang=soon", "--loopcanary-hang=-1s"])
def test_a_wrong_duration_is_bad_use(tmp_path: Path, option: str) -> None:
    result = run(tmp_path, option, text=HANGS)
    assert result.returncode == 4
    assert "--loopcanary-hang" in result.stderr
