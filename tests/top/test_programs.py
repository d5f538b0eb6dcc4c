"""Real programs: one that hangs and is killed, one that stalls now and then and exits."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.targets import until

from loopcanary.assembly.top import Survey, health_of
from loopcanary.model import Cause, StallState
from loopcanary.top.rows import LaneRow, RowReader, State

pytestmark = pytest.mark.native

HANGS = """
import asyncio, re
async def work():
    await asyncio.sleep(0)
    print("ready", flush=True)
    re.match(r"(a+)+$", "a" * 64 + "b")
async def main():
    await asyncio.create_task(work(), name="request-7")
asyncio.run(main())
"""
STALLS = """
import asyncio, sys, time
def price():
    time.sleep(0.3)
async def main():
    loop = asyncio.get_running_loop()
    end = loop.run_in_executor(None, sys.stdin.read)
    print("ready", flush=True)
    while not end.done():
        loop.call_soon(price)
        await asyncio.wait([end], timeout=1)
asyncio.run(main())
"""
"""Again and again: on a busy machine it may stall for other reasons, too."""


def program_name(folder: Path) -> str:
    """Of no other test that runs at the same time: pytest names the folders of its workers alike."""
    return f"{folder.name}-{os.getpid()}"


@contextlib.contextmanager
def watched(source: str, folder: Path, package_path: Path) -> Iterator[subprocess.Popen[str]]:
    """The program under `loopcanary run`, once it has said that it is ready."""
    script = folder / f"{program_name(folder)}.py"
    script.write_text(source, encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
    path = os.pathsep.join(filter(None, [str(package_path), kept.get("PYTHONPATH")]))
    process = subprocess.Popen(
        [sys.executable, "-m", "loopcanary", "run", "--quiet", "--store", str(folder / "store"), str(script)],
        cwd=folder,
        env={**kept, "PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


class Eyes:
    """Looks at one program with a watch of its own."""

    def __init__(self, survey: Any, pid: int) -> None:
        self._watch = RowReader(survey.read, health_of)
        self._pid = pid

    def row(self, is_so: Callable[[LaneRow], bool] = lambda _: True) -> LaneRow | None:
        """The program's row, if it is so."""
        mine = [row for row in self._watch.look() if row.pid == self._pid and not row.is_past]
        return mine[0] if mine and is_so(mine[0]) else None


@pytest.fixture
def survey() -> Iterator[Any]:
    with Survey() as made:
        yield made


def test_a_program_that_hangs_with_the_gil_and_is_killed(survey: Any, tmp_path: Path, package_path: Path):
    with watched(HANGS, tmp_path, package_path) as program:
        eyes = Eyes(survey, program.pid)
        row = until(lambda: eyes.row(hangs_in_something))
        assert row.work is not None
        assert (row.work.callback, row.work.task) == ("work", "request-7")
        assert row.stalls >= 1  # on a busy machine its start may have been one, too
        assert row.is_near
        assert row.store == str(tmp_path / "store")
        until(lambda: eyes.row(is_of_work))
        program.send_signal(signal.SIGKILL)
        program.wait()
        row = until(lambda: eyes.row(was_killed_in_it))
        assert row.work is not None
        assert row.work.task == "request-7"


def hangs_in_something(row: LaneRow) -> bool:
    """In what, the watchdog has found out. All of the time between two looks, but for what they last."""
    is_busy = row.utilization_now == pytest.approx(1, abs=0.001)
    return (
        row.state is State.HUNG and is_busy and row.work is not None and (row.work_ns or 0) >= 1_000_000_000
    )


def was_killed_in_it(row: LaneRow) -> bool:
    """Each look judges a few dead processes only."""
    return row.state is State.KILLED and row.last is not None and row.last.state is StallState.KILLED


def is_of_work(row: LaneRow) -> bool:
    """Its last stall is the one that hangs, and not its start on a busy machine."""
    return row.last is not None and row.last.culprit is not None and row.last.culprit.line == 6


def is_of_price(row: LaneRow) -> bool:
    last = row.last
    if last is None or last.culprit is None or last.state is not StallState.ENDED:
        return False
    return (last.culprit.function, last.culprit.line, last.cause) == ("price", 4, Cause.SLEEP)


def test_a_program_that_stalls_now_and_then_and_exits(survey: Any, tmp_path: Path, package_path: Path):
    with watched(STALLS, tmp_path, package_path) as program:
        eyes = Eyes(survey, program.pid)
        row = until(lambda: eyes.row(lambda row: row.state is State.IDLE and is_of_price(row)))
        assert row.stalls >= 1
        assert row.last is not None
        assert row.last.duration_ns >= 300_000_000
        assert program.stdin is not None
        program.stdin.close()
        program.stdin = None
        program.wait()
        until(lambda: eyes.row(lambda row: row.state is State.EXITED))


def test_once_from_the_command_line(loopcanary: Any, place: Path, package_path: Path):
    with watched(HANGS, place, package_path) as program:
        words = f"{program_name(place)}.py {program.pid}"
        hung = until(lambda: _told(loopcanary, words))
        assert hung["pid"] == program.pid
        assert hung["callback"] == "work"
        text = loopcanary("top", "--once", "--interval", "0.1", "--filter", words)
        assert text.returncode == 0
        assert text.stderr == ""
        head, columns, row = text.stdout.splitlines()
        # Beside it there may be others' programs, which are not of these words.
        assert re.fullmatch(r"1 program, 1 loop(, \d+ not shown)?: 1 hung", head)
        assert columns.split()[:2] == ["state", "pid"]
        assert "work (request-7)" in row


def _told(loopcanary: Any, words: str) -> dict[str, Any] | None:
    ran = loopcanary("top", "--once", "--format", "json", "--interval", "0.1", "--filter", words)
    found = json.loads(ran.stdout)["loops"]
    hung = [one for one in found if one["state"] == "hung" and one["callback"]]
    return hung[0] if hung and hung[0]["utilization"]["now"] == pytest.approx(1) else None


def test_group_and_stack_of_a_program_that_hangs(survey: Any, tmp_path: Path, package_path: Path):
    from loopcanary.cli.top_pages import LivePages

    with watched(HANGS, tmp_path, package_path) as program:
        eyes = Eyes(survey, program.pid)
        row = until(lambda: eyes.row(is_of_work))
        group = "\n".join(line.plain for line in LivePages().group(row, 100))
        assert "still in progress" in group
        assert "in work" in group
        stack = "\n".join(line.plain for line in LivePages().stack(row, 100))
        assert f"process {program.pid}" in stack or "ptrace_scope" in stack or "SYS_PTRACE" in stack
        tasks = "\n".join(line.plain for line in LivePages().tasks(row, 100))
        assert "asyncio" in tasks or "ptrace_scope" in tasks or "SYS_PTRACE" in tasks
        program.kill()
        program.wait()
        row = until(lambda: eyes.row(lambda row: row.state is State.KILLED))
        assert "has ended" in LivePages().stack(row, 100)[0].plain


def test_the_group_of_a_stall_that_is_stored(survey: Any, tmp_path: Path, package_path: Path):
    from loopcanary.cli.top_pages import LivePages

    def stored() -> str | None:
        row = eyes.row(lambda row: row.last is not None)
        text = "" if row is None else "\n".join(line.plain for line in LivePages().group(row, 100))
        return text if "The longest one" in text and "time.sleep(0.3)" in text else None

    with watched(STALLS, tmp_path, package_path) as program:
        eyes = Eyes(survey, program.pid)
        text = until(stored)
    assert "The last stall" in text
