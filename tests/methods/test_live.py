"""Calls of a program that runs already, traced for a while."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from loopcanary import outside
from loopcanary.assembly import native_module
from loopcanary.assembly.dump import flight_file_of
from loopcanary.flight import FlightError, FlightFile
from loopcanary.flight.beside.calls import CallsFile
from loopcanary.flight.source import open_source
from loopcanary.model.method_map import ANSWER, CALLS, ERRAND, ERRAND_ENDS, METHODS

pytestmark = pytest.mark.native
GIVES_UP_S = 280
BUSY = """
import asyncio, os, sys, threading

def parse(count):
    return sum(range(count))

def load():
    for _ in range(3):
        parse(1_000)  # some microseconds, in which calls are timed

async def turn():
    load()
    await asyncio.sleep(0.001)

async def turns(ready):
    await turn()
    ready()
    while True:
        await turn()

def loop(ready):
    asyncio.run(turns(ready))
"""
TWO_LOOPS = """
first = threading.Event()
threading.Thread(target=loop, args=(first.set,), name="second", daemon=True).start()
first.wait()
loop(lambda: print("ready", flush=True))
"""
ONE_LOOP = 'loop(lambda: print("ready", flush=True))'
Start = Callable[..., "subprocess.Popen[str]"]


def clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a program, which has said that it is ready."""
    started = []

    def started_one(script: str, *options: str, watched: bool = True) -> subprocess.Popen[str]:
        (tmp_path / "app.py").write_text(BUSY + script)
        run = ("-m", "loopcanary", "run", *options) if watched else ()
        with (tmp_path / "stderr").open("w") as stderr:
            program = subprocess.Popen(
                (sys.executable, *run, "app.py"),
                cwd=tmp_path,
                env=clean(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        started.append(program)
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
        return program

    yield started_one
    for program in started:
        with program:
            program.kill()


def ask(program: subprocess.Popen[str], *words: str) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-m", "loopcanary", "methods", str(program.pid), *words)
    return subprocess.run(
        command, env=clean(), capture_output=True, text=True, timeout=GIVES_UP_S, check=False
    )


def ask_for_calls(
    program: subprocess.Popen[str], *words: str, threads: int = 1
) -> subprocess.CompletedProcess[str]:
    """For as long as it takes until that many threads have called something, again and again: on a busy
    machine a thread may not run for a while. Then the command is interrupted."""
    flight = flight_of(program)
    with asked_for_long(program, *words) as asked:
        wait_for(lambda: sum(calls_in(flight, one) > 1_000 for one in range(threads)) == threads)
        asked.send_signal(signal.SIGINT)
        said, errors = asked.communicate(timeout=GIVES_UP_S)
    return subprocess.CompletedProcess(asked.args, asked.returncode, said, errors)


def recorded(program: subprocess.Popen[str], *words: str, threads: int = 1) -> dict[str, Any]:
    """What each thread called: function to its row."""
    done = ask_for_calls(program, "--format", "json", *words, threads=threads)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    return {
        thread["thread"]: {row["function"]: row for row in thread["calls"]["rows"]}
        for thread in found["threads"]
    }


def flight_of(program: subprocess.Popen[str]) -> str:
    path = flight_file_of(outside.Process.of(program.pid))
    assert path is not None
    return path


def beside(flight: str) -> list[str]:
    """What lies beside a flight file of calls."""
    path = Path(flight)
    suffixes = (ERRAND, ERRAND_ENDS, ANSWER, METHODS, f"{CALLS}0", f"{CALLS}1")
    return [suffix for suffix in suffixes if path.with_name(path.name + suffix).exists()]


def wait_for(what: Callable[[], bool]) -> None:
    gives_up = time.monotonic() + GIVES_UP_S
    while not what():
        assert time.monotonic() < gives_up
        time.sleep(0.01)


def test_each_watched_thread_has_its_calls(start: Start):
    program = start(TWO_LOOPS)
    flight = flight_of(program)
    threads = recorded(program, threads=2)
    assert set(threads) == {"MainThread", "second"}
    for rows in threads.values():
        loads, parses = rows["load"]["calls"], rows["parse"]["calls"]
        assert loads > 0
        assert 3 * (loads - 1) <= parses <= 3 * (loads + 1)
        assert rows["load"]["depth"] == rows["parse"]["depth"] - 1
    wait_for(lambda: beside(flight) == [])
    assert set(recorded(program, threads=2)) == {"MainThread", "second"}, "once more"


def test_only_what_was_chosen_is_traced(start: Start):
    program = start(ONE_LOOP)
    assert set(recorded(program, "asyncio.tasks")["MainThread"]) == {"sleep"}
    done = ask(program, "no.such.package", "--for", "100ms", "--timeout", "100s")
    assert "none of the chosen functions was called" in done.stdout


def test_other_tools_get_them(start: Start, tmp_path: Path):
    program, out = start(ONE_LOOP), tmp_path / "calls.json"
    done = ask_for_calls(program, "--format", "speedscope", "--output", str(out))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    names = {frame["name"] for frame in json.loads(out.read_text())["shared"]["frames"]}
    assert {"load", "parse"} <= names
    done = ask_for_calls(program, "-o", str(tmp_path / "calls.txt"))
    assert done.stdout == ""
    assert "load x" in (tmp_path / "calls.txt").read_text()


def test_a_file_for_a_browser_has_them(start: Start, tmp_path: Path):
    done = ask_for_calls(start(ONE_LOOP), "--format", "html")
    assert (done.returncode, done.stderr) == (0, "")
    assert "MainThread (asyncio)" in done.stdout
    assert "By function" in done.stdout
    assert re.search(r'"name":"load",.*"name":"parse"', done.stdout)


def test_a_trace_has_each_call_by_itself(start: Start):
    done = ask_for_calls(start(ONE_LOOP), "--format", "chrome")
    events = json.loads(done.stdout)["traceEvents"]
    [track] = [one["tid"] for one in events if one["args"].get("name") == "exact calls"]
    slices = [one for one in events if one["tid"] == track and one["ph"] == "X"]
    loads = [one for one in slices if one["name"] == "load"][1:-1]
    assert loads
    for load in loads:
        begin, end = load["ts"], load["ts"] + load["dur"]
        inside = [one for one in slices if begin <= one["ts"] and one["ts"] + one["dur"] <= end]
        # What has called it may begin and end with it.
        assert [one["name"] for one in inside if one["name"] not in ("load", "turn")] == ["parse"] * 3


def test_what_is_traced_already_is_shown(start: Start):
    program = start(ONE_LOOP, "--methods", ".")
    done = ask(program, "asyncio", "--for", "300ms", "--timeout", "100s")
    assert "load x" in done.stdout
    assert done.stderr == "it was started with --methods ., and these are traced\n"
    assert METHODS in beside(flight_of(program)), "they are traced still"


def test_a_program_that_is_not_watched_is_refused(start: Start):
    program = start(ONE_LOOP, watched=False)
    done = ask(program)
    assert done.returncode == 2
    assert f"process {program.pid} is not watched by loopcanary: start it with" in done.stderr


def test_one_that_does_nothing_is_not_waited_for_forever(start: Start):
    program = start(ONE_LOOP)
    program.send_signal(signal.SIGSTOP)
    done = ask(program, "--timeout", "300ms")
    assert done.returncode == 1
    assert "did not begin within 0.3 s: it runs no watched work now" in done.stderr
    assert beside(flight_of(program)) == [], "withdrawn"


TOOLS = """
if hasattr(sys, "monitoring"):
    for tool in (2, 3, 4):
        sys.monitoring.use_tool_id(tool, f"tool {tool}")
"""


@pytest.mark.skipif(not hasattr(sys, "monitoring"), reason="from 3.12 on")
def test_why_it_cannot_trace_is_said(start: Start):
    done = ask(start(TOOLS + ONE_LOOP), "--timeout", "100s")
    assert done.returncode == 2
    assert "other tools use the tool ids of sys.monitoring: tool 4, tool 3, tool 2" in done.stderr


def put(flight: str, errand: str, suffix: str = ERRAND) -> None:
    """As a command does that is killed then."""
    Path(flight + suffix).write_text(errand)
    page = native_module().open_keeper(flight)
    page.errand()
    page.close()


def test_it_ends_by_itself_where_no_command_ends_it(start: Start):
    program = start(ONE_LOOP)
    flight = flight_of(program)
    # Long enough for this test to see it.
    put(flight, json.dumps({"id": "a", "methods": ["."], "seconds": 5}))
    wait_for(lambda: ANSWER in beside(flight))
    assert json.loads(Path(flight + ANSWER).read_text()) == {"id": "a", "notice": None}
    wait_for(lambda: METHODS not in beside(flight))
    assert "load" in recorded(program)["MainThread"]


def test_one_command_at_a_time(start: Start):
    program = start(ONE_LOOP)
    flight = flight_of(program)
    put(flight, json.dumps({"id": "a", "methods": ["."], "seconds": 3000}))
    wait_for(lambda: ANSWER in beside(flight))
    done = ask(program, "--timeout", "100s")
    assert done.returncode == 2
    assert "another command is tracing its methods" in done.stderr
    put(flight, "b\n", ERRAND_ENDS)
    wait_for(lambda: ERRAND_ENDS not in beside(flight))
    put(flight, "c\na\n", ERRAND_ENDS)
    wait_for(lambda: METHODS not in beside(flight))


HOSTILE = [
    "",
    "[]",
    "{",
    '{"id": 1, "methods": ["."], "seconds": 1}',
    '{"id": "a", "methods": ".", "seconds": 1}',
    '{"id": "a", "methods": [1], "seconds": 1}',
    '{"id": "a", "methods": ["."], "seconds": -1}',
    '{"id": "a", "methods": ["."], "seconds": 1e99}',
    '{"id": "a", "methods": ["."], "seconds": NaN}',
    "[" * 5_000,
]


@contextmanager
def asked_for_long(program: subprocess.Popen[str], *more: str) -> Iterator[subprocess.Popen[str]]:
    words = ("methods", str(program.pid), "--for", f"{GIVES_UP_S}s", "--timeout", "100s")
    with subprocess.Popen(
        (sys.executable, "-m", "loopcanary", *words, *more),
        env=clean(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as asked:
        try:
            yield asked
        finally:
            asked.kill()


def calls_in(flight: str, thread: int = 0) -> int:
    """Begins and ends that one of the threads has noted."""
    with suppress(FlightError), FlightFile.open(flight) as file:
        calls = CallsFile(open_source(f"{flight}{CALLS}{thread}"), file.tick_clock)
        try:
            return calls.progress(0).words
        finally:
            calls.close()
    return 0  # the thread has made no file yet


def test_what_a_program_called_before_it_ended_is_shown(start: Start):
    program = start(ONE_LOOP)
    flight = flight_of(program)
    with asked_for_long(program) as asked:
        wait_for(lambda: ANSWER in beside(flight) and calls_in(flight) > 1_000)
        program.kill()
        said, errors = asked.communicate(timeout=GIVES_UP_S)
    assert "load x" in said
    assert f"process {program.pid} has ended" in errors


def test_a_pipe_in_place_of_the_answer_is_not_waited_for(start: Start):
    program = start(ONE_LOOP)
    os.mkfifo(flight_of(program) + ANSWER)
    assert "load" in recorded(program)["MainThread"]


def test_ctrl_c_shows_what_there_is(start: Start):
    program = start(ONE_LOOP)
    flight = flight_of(program)
    with asked_for_long(program) as asked:
        wait_for(lambda: ANSWER in beside(flight) and calls_in(flight) > 1_000)
        asked.send_signal(signal.SIGINT)
        said, _ = asked.communicate(timeout=GIVES_UP_S)
    assert "load x" in said
    wait_for(lambda: beside(flight) == [])


def test_an_errand_that_is_none_changes_nothing(start: Start, tmp_path: Path):
    program = start(ONE_LOOP)
    flight = flight_of(program)
    for errand in HOSTILE:
        put(flight, errand)
        wait_for(lambda: ERRAND not in beside(flight))
    Path(flight + ERRAND).symlink_to("/etc/passwd")
    assert "load" in recorded(program)["MainThread"]
    wait_for(lambda: beside(flight) == [])
    assert "errand" not in (tmp_path / "stderr").read_text()
