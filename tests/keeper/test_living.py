"""Programs that leave their stalls to a keeper: C may hold the GIL, and anything may be killed."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from tests.keeper.processes import GIVES_UP_S, Program, Start, flight_files, keep, line_of, stored
from tests.notifications.receiving import receiver

from loopcanary.assembly.store import open_store, recover
from loopcanary.keeper.seat import statuses
from loopcanary.model import StallState
from loopcanary.words.sentences import say

NOT_INTERCEPTED = say("not-intercepted")
HOLDING = Path(__file__).parent / "programs" / "holding.py"
pytestmark = [
    pytest.mark.native,
    pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs pidfd_open"),
]


def held(start: Start, store: Path, *words: str, **environment: str) -> Program:
    """A program that holds its GIL; the keeper has told so on its stderr, or, where the program judges, the
    watchdog."""
    program = start("run", "--store", store, HOLDING, *words, LOOPCANARY_KEEPER="1", **environment)
    assert program.stderr is not None
    told = "blocked for " if "--drop" in words else " and still in progress, "
    while told not in (line := program.stderr.readline()):
        assert line
    return program


def limits(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/limits").read_text().splitlines()


def released(program: Program) -> str:
    """The rest of its stderr."""
    _, rest = program.communicate("x", timeout=GIVES_UP_S)
    assert program.returncode == 0
    return rest


def taken_in(store: Path) -> list[StallState]:
    """The states of all stalls, once commands have taken in what is left."""
    opened = open_store(store)
    recover(opened)
    opened.close()
    return [stall.state for stall in stored(store)]


def test_a_hang_is_reported_while_c_holds_the_gil(start: Start, store: Path):
    program = held(start, store, "--patient")
    while not (status := statuses(str(store))[0]):
        pass  # it is about to say who it is
    assert status["watched"] == [program.pid]
    [bound] = [line for line in limits(status["pid"]) if line.startswith("Max data size")]
    assert bound.split()[3] == str(256 << 20)
    rest = released(program)
    assert "[loopcanary] over after " in rest
    assert "[loopcanary] 1 stall in 1 bug, " in rest
    assert [stall.state for stall in stored(store)] == [StallState.ENDED]
    assert flight_files(store) == []


def test_one_that_is_killed_in_a_hang_is_stored_as_killed(start: Start, store: Path):
    keeper = keep(start, store)
    program = held(start, store)
    assert [stall.state for stall in stored(store)] == [StallState.ONGOING]
    program.kill()
    assert line_of(keeper).startswith(f"holding.py (pid {program.pid}) was killed: 1 stall, ")
    assert [stall.state for stall in stored(store)] == [StallState.KILLED]
    assert flight_files(store) == []


def test_own_code_sees_a_hang_when_it_is_over(start: Start, store: Path):
    program = held(start, store, "--drop")
    assert stored(store) == []
    assert " over after " not in released(program)
    assert stored(store) == [], "dropped by the program"


def test_own_code_has_not_seen_what_was_killed(start: Start, store: Path):
    keeper = keep(start, store)
    program = held(start, store, "--drop")
    program.kill()
    assert "was killed: 1 stall, " in line_of(keeper)
    [killed] = stored(store)
    assert killed.state is StallState.KILLED
    assert NOT_INTERCEPTED in killed.evidence


def test_interceptors_of_packages_see_killed_stalls(start: Start, store: Path, tmp_path: Path):
    about = tmp_path / "seen-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: seen\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[loopcanary_tools.interceptors]\nsee = seen_plugin:see\n")
    (tmp_path / "seen_plugin.py").write_text(
        "from dataclasses import replace\n"
        "def see(issue):\n    return replace(issue, title='seen: ' + issue.state.value)\n"
    )
    keeper = start("keep", store, PYTHONPATH=str(tmp_path))
    assert line_of(keeper) == f"at work: {store}\n"
    program = held(start, store)
    keeper.send_signal(signal.SIGSTOP)
    program.kill()
    program.wait(timeout=GIVES_UP_S)
    opened = open_store(store)
    assert recover(opened, living=False).stalls == [], "it is the keeper's, which has the interceptors"
    opened.close()
    keeper.send_signal(signal.SIGCONT)
    assert "was killed: 1 stall, seen: killed" in line_of(keeper)
    assert [stall.title for stall in stored(store)] == ["seen: killed"]


def test_a_keeper_that_is_killed_loses_nothing(start: Start, store: Path):
    keeper = keep(start, store)
    program = held(start, store)
    keeper.kill()
    keeper.wait(timeout=GIVES_UP_S)
    rest = released(program)
    assert rest.count("hang") == 0
    assert taken_in(store) == [StallState.ENDED]


def test_both_may_be_killed(start: Start, store: Path):
    keeper = keep(start, store)
    program = held(start, store)
    for one in (keeper, program):
        one.kill()
        one.wait(timeout=GIVES_UP_S)
    assert taken_in(store) == [StallState.KILLED]


def test_a_program_does_not_wait_for_a_stopped_keeper(start: Start, store: Path):
    keeper = keep(start, store)
    program = held(start, store)
    keeper.send_signal(signal.SIGSTOP)
    released(program)
    keeper.send_signal(signal.SIGCONT)
    keeper.terminate()
    assert keeper.communicate(timeout=GIVES_UP_S)[1] == ""
    assert taken_in(store) == [StallState.ENDED]


def test_a_keeper_notifies_of_a_hang_and_of_its_end(start: Start, store: Path):
    with receiver() as there:
        ways = {"LOOPCANARY_NOTIFY": "webhook", "LOOPCANARY_WEBHOOK_URL": there.url}
        program = held(start, store, **ways)
        assert "and still in progress" in there.next()["text"]
        released(program)
        assert "over after" in there.next()["text"]


def test_a_keeper_notifies_of_a_killed_program(start: Start, store: Path):
    with receiver() as there:
        ways = {"LOOPCANARY_NOTIFY": "webhook", "LOOPCANARY_WEBHOOK_URL": there.url}
        program = held(start, store, **ways)
        assert "still in progress" in there.next()["text"]
        program.kill()
        assert "killed while stalled" in there.next()["text"]
        assert there.posts.empty()


def test_a_persons_keeper_takes_over_from_a_programs(start: Start, store: Path):
    with receiver() as there:
        program = held(start, store, "--patient")
        keeper = start("keep", "--notify", "webhook", store, LOOPCANARY_WEBHOOK_URL=there.url)
        assert line_of(keeper) == f"at work: {store}\n"
        while statuses(str(store))[0].get("pid") != keeper.pid:
            assert keeper.poll() is None
        assert "[loopcanary] over after " in released(program)
        assert there.next()["text"].startswith(("`hang of ", "`not responding (ANR) for "))
        keeper.terminate()
        assert keeper.communicate(timeout=GIVES_UP_S) == ("", "")
    assert [stall.state for stall in stored(store)] == [StallState.ENDED]


STALLING = """
import asyncio, time
async def main():
    for _ in range(60):
        asyncio.get_running_loop().call_soon(time.sleep, 0.11)
        await asyncio.sleep(0.01)
asyncio.run(main())
"""


def test_no_stall_is_lost_while_one_takes_over(start: Start, store: Path):
    keeping = {"LOOPCANARY_KEEPER": "1", "LOOPCANARY_STALLS_PER_MINUTE": "1000"}
    program = start("run", "--store", store, "-c", STALLING, **keeping)
    while not any(status.get("stalls") for status in statuses(str(store))):
        assert program.poll() is None
    keeper = keep(start, store)
    assert program.poll() is None
    program.communicate(timeout=GIVES_UP_S)
    keeper.terminate()
    assert keeper.communicate(timeout=GIVES_UP_S)[1] == ""
    assert len(taken_in(store)) == 60


def test_issues_are_lines_of_the_programs_log_file(start: Start, store: Path, tmp_path: Path):
    log = tmp_path / "log.jsonl"
    released(held(start, store, "--patient", LOOPCANARY_LOG_FILE=str(log)))
    states = [json.loads(line)["state"] for line in log.read_text().splitlines()]
    assert states == ["ongoing", "ended"]
