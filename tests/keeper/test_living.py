"""Programs that leave their stalls to a keeper: C may hold the GIL, and anything may be killed."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from pathlib import Path

import pytest
from tests.keeper.processes import (
    GIVES_UP_S,
    Program,
    Start,
    flight_files,
    keep,
    line_of,
    stored,
    was_killed,
)
from tests.notifications.receiving import receiver

from loopcanary.assembly.store import open_store, recover
from loopcanary.keeper.seat import statuses
from loopcanary.model import StallState
from loopcanary.model.search import STALLS, IssueQuery
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
    while not (status := statuses(str(store))[0]) or status["watched"] != [program.pid]:
        assert program.poll() is None  # it is about to say so
        time.sleep(0.02)
    [bound] = [line for line in limits(status["pid"]) if line.startswith("Max data size")]
    assert bound.split()[3] == str(256 << 20)
    rest = released(program)
    assert "[loopcanary] ended after " in rest
    assert re.search(r"\[loopcanary\] [0-9]+ stalls? in [0-9]+ bugs?, ", rest)
    assert [stall.state for stall in stored(store)] == [StallState.ENDED]
    assert flight_files(store) == []


def test_one_that_is_killed_in_a_hang_is_stored_as_killed(start: Start, store: Path):
    keeper = keep(start, store)
    program = held(start, store)
    assert [stall.state for stall in stored(store)] == [StallState.ONGOING]
    program.kill()
    assert was_killed(line_of(keeper), f"holding.py (pid {program.pid})")
    assert [stall.state for stall in stored(store)] == [StallState.KILLED]
    assert flight_files(store) == []


def test_own_code_sees_a_hang_when_it_is_over(start: Start, store: Path):
    program = held(start, store, "--drop")
    assert stored(store) == []
    assert " ended after " not in released(program)
    assert stored(store) == [], "dropped by the program"


def test_own_code_has_not_seen_what_was_killed(start: Start, store: Path):
    keeper = keep(start, store)
    program = held(start, store, "--drop")
    program.kill()
    assert was_killed(line_of(keeper), f"holding.py (pid {program.pid})")
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
    assert re.search("was killed: [0-9]+ stalls?, .*seen: killed", line_of(keeper))
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


def is_of_a_hang(text: str) -> bool:
    return "still in progress" in text


def test_a_keeper_notifies_of_a_hang_and_of_its_end(start: Start, store: Path):
    with receiver() as there:
        ways = {"LOOPCANARY_NOTIFY": "webhook", "LOOPCANARY_WEBHOOK_URL": there.url}
        program = held(start, store, **ways)
        assert is_of_a_hang(there.next()["text"])
        released(program)
        while "ended after" not in (text := there.next()["text"]):
            assert is_of_a_hang(text)  # it was released late


def test_a_keeper_notifies_of_a_killed_program(start: Start, store: Path):
    with receiver() as there:
        ways = {"LOOPCANARY_NOTIFY": "webhook", "LOOPCANARY_WEBHOOK_URL": there.url}
        program = held(start, store, **ways)
        assert is_of_a_hang(there.next()["text"])
        program.kill()
        while "killed while stalled" not in (text := there.next()["text"]):
            assert is_of_a_hang(text)  # it was killed late
        assert there.posts.empty()


def test_a_persons_keeper_takes_over_from_a_programs(start: Start, store: Path):
    with receiver() as there:
        program = held(start, store, "--patient")
        keeper = start("keep", "--notify", "webhook", store, LOOPCANARY_WEBHOOK_URL=there.url)
        assert line_of(keeper) == f"at work: {store}\n"
        while statuses(str(store))[0].get("pid") != keeper.pid:
            assert keeper.poll() is None
        assert "[loopcanary] ended after " in released(program)
        assert there.next()["text"].startswith(("`hang of ", "`not responding (ANR) for "))
        keeper.terminate()
        assert keeper.communicate(timeout=GIVES_UP_S) == ("", "")
    assert [stall.state for stall in stored(store)] == [StallState.ENDED]


STALLING = """
import asyncio, sys, threading, time
import loopcanary
from pathlib import Path
from loopcanary.flight import FlightFile
is_over = threading.Event()

def waits():
    sys.stdin.readline()
    is_over.set()

def has_room():
    # Sixteen stalls have room in the flight file; a keeper may be without a core for long.
    links = Path(sys.argv[1], "flight").glob("*.flight")
    with FlightFile.open(next(links).resolve()) as flight:
        return len(flight.stalls()) < 8

async def main():
    count = 0
    await asyncio.sleep(0)
    threading.Thread(target=waits, daemon=True).start()
    while not is_over.is_set() or count < 20:
        if has_room():
            asyncio.get_running_loop().call_soon(time.sleep, 0.11)
            count += 1
        await asyncio.sleep(0.01)
    print(count)

asyncio.run(main())
"""


def test_no_stall_is_lost_while_one_takes_over(start: Start, store: Path):
    keeping = {"LOOPCANARY_KEEPER": "1", "LOOPCANARY_STALLS_PER_MINUTE": "1000"}
    program = start("run", "--store", store, "-c", STALLING, store, **keeping)
    while not any(status.get("stalls") for status in statuses(str(store))):
        assert program.poll() is None
        time.sleep(0.02)
    keeper = keep(start, store)
    assert program.poll() is None
    out, _ = program.communicate("\n", timeout=GIVES_UP_S)
    keeper.terminate()
    assert keeper.communicate(timeout=GIVES_UP_S)[1] == ""
    opened = open_store(store)
    recover(opened)
    [session] = opened.reader.sessions(IssueQuery())
    found = opened.reader.issues(STALLS)
    opened.close()
    assert session.statistics["stalls_dropped_no_slot"] == 0
    assert len(found) == session.statistics["stalls_recorded"] >= int(out)


def test_issues_are_lines_of_the_programs_log_file(start: Start, store: Path, tmp_path: Path):
    log = tmp_path / "log.jsonl"
    released(held(start, store, "--patient", LOOPCANARY_LOG_FILE=str(log)))
    lines = list(map(json.loads, log.read_text().splitlines()))
    [hang] = {line["id"] for line in lines if line["state"] == "ongoing"}
    # It is told of once more where it lasted for five seconds.
    states = dict.fromkeys(line["state"] for line in lines if line["id"] == hang)
    assert list(states) == ["ongoing", "ended"]
