"""CPython's own tests of asyncio have the same outcome under `loopcanary run` as without it.

By default the modules that use handles and loops most; all of test_asyncio with LOOPCANARY_FULL=1.
"""

from __future__ import annotations

import faulthandler
import importlib.util
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

LOOPS = ("base_events", "events", "streams", "subprocess", "runners")
FULL = os.environ.get("LOOPCANARY_FULL") == "1"
GIVES_UP_S = 1_200

pytestmark = [
    pytest.mark.native,
    pytest.mark.skipif(
        importlib.util.find_spec("test") is None or importlib.util.find_spec("test.test_asyncio") is None,
        reason="this Python came without its tests",
    ),
]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What regrtest says at the end, and of which files it complains."""

    status: int
    result: str
    counts: str
    complaints: tuple[str, ...]


def outcome_of(command: list[str], environment: dict[str, str], folder) -> Outcome:
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=GIVES_UP_S,
    )
    result = re.search(r"^Result: (.*)$", done.stdout, re.MULTILINE)
    counts = re.search(r"^Total tests: (.*)$", done.stdout, re.MULTILINE)
    assert result is not None, done.stdout
    complaints = re.findall(r"^.* (?:failed|altered the execution environment).*$", done.stdout, re.MULTILINE)
    return Outcome(done.returncode, result[1], counts[1] if counts else "", tuple(complaints))


def test_asyncio_has_the_same_outcome(watched, tmp_path):
    # Half a minute on two idle cores: the limit is GIVES_UP_S and not pytest's for one test.
    faulthandler.cancel_dump_traceback_later()
    tests = ["test_asyncio"] if FULL else [f"test.test_asyncio.test_{module}" for module in LOOPS]
    under, words = watched(), ["-m", "test", "-j2", *tests]
    commands = [sys.executable, *words], under.command(*words)
    with ThreadPoolExecutor() as pool:  # most of these tests wait
        plain, seen = pool.map(lambda command: outcome_of(command, under.environment(), tmp_path), commands)
    assert seen == plain
    sessions = under.report()["sessions"]
    assert sum(loop["turns"] for session in sessions for loop in session["loops"]) > 1_000
