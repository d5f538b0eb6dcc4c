"""A program that is killed while it hangs leaves the hang behind, whatever killed it."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import pytest

from loopcanary.engine.flight_place import SHARED_MEMORY
from loopcanary.flight import FlightError, FlightFile, HangFile

from .watching import GIVES_UP_S, PROGRAMS, Marks, Watched, admitted

HANGS = PROGRAMS / "hangs.py"
MARKS = Marks(HANGS.read_text())
NS_PER_S = 1_000_000_000
UNTIL_GONE = """
import asyncio, os, sys
async def main():
    while os.path.lexists(sys.argv[1]):
        await asyncio.sleep(0.01)
asyncio.run(main())
"""
"""A program that is over before our thread got to run would leave the file to the next."""

Hanging = subprocess.Popen[str]


def killed(program: Hanging) -> int:
    program.send_signal(signal.SIGKILL)
    return -signal.SIGKILL


def segfault_by_signal(program: Hanging) -> int:
    program.send_signal(signal.SIGSEGV)
    return -signal.SIGSEGV


def segfault_in_a_thread(program: Hanging) -> int:
    program.stdin.write("die\n")
    program.stdin.flush()
    return -signal.SIGSEGV


def exit_without_clean_up(program: Hanging) -> int:
    program.send_signal(signal.SIGUSR1)
    return 7


@dataclass(frozen=True, slots=True)
class Story:
    sentence: str
    kind: str
    end: Callable[[Hanging], int]
    cause: str
    state: str = "killed"
    """Of the stall; the session ends accordingly."""


STORIES = [
    Story("SIGKILL in an endless regular expression", "endless_regex", killed, "native-cpu"),
    Story("SIGKILL in an endless sleep", "endless_sleep", killed, "sleep"),
    Story("SIGKILL in a deadlock", "deadlock", killed, "lock"),
    Story("SIGSEGV in an endless regular expression", "endless_regex", segfault_by_signal, "native-cpu"),
    Story(
        "a wild pointer of another thread in an endless sleep", "endless_sleep", segfault_in_a_thread, "sleep"
    ),
    Story(
        "os._exit out of an endless regular expression",
        "endless_regex",
        exit_without_clean_up,
        "native-cpu",
        "ended",
    ),
]
every_end = pytest.mark.parametrize(
    "story", STORIES, ids=[story.sentence.replace(" ", "-") for story in STORIES]
)


@pytest.fixture
def hanging(watched):
    """hanging(kind, for_ns) -> (Watched, program): hangs for `for_ns` by the evidence in its flight file."""
    programs = []

    def start(kind: str, for_ns: int = NS_PER_S // 5, *, engine: str = "native", **variables: str):
        under = watched(engine)
        # Beside the store: elsewhere root quotes no line of a dead program, on which portable causes rest.
        path = HANGS if engine == "native" else shutil.copy(HANGS, under.store.parent)
        program = under.start(path, kind, variables=variables, stdin=subprocess.PIPE)
        programs.append(program)
        assert program.stdout.readline() == "ready\n"
        wait = wait_for_hang if engine == "native" else wait_for_what_is_left
        wait(under, program, for_ns)
        return under, program

    yield start
    for program in programs:
        program.kill()
        program.wait()
        program.stdin.close()
        program.stdout.close()


def wait_for_hang(watched: Watched, program: Hanging, for_ns: int) -> None:
    """Of a second and more: until all threads have been read, too."""
    (link,) = (watched.store / "flight").glob("*.flight")
    flight = FlightFile.open(link.resolve())
    try:
        until = time.monotonic() + GIVES_UP_S
        # Those that are over, such as the start on a busy machine, are there until they are stored.
        while not any(
            e.end_ns is None and e.last_look_ns - e.begin_ns >= for_ns and (e.threads or for_ns < NS_PER_S)
            for _, e in flight.stalls()
        ):
            assert time.monotonic() < until, "the hang does not show in the flight file"
            assert program.poll() is None
            time.sleep(0.02)
    finally:
        flight.close()


def wait_for_what_is_left(watched: Watched, program: Hanging, for_ns: int) -> None:
    """By the portable engine, from a second on. Its file is there a moment before there is a record in it."""
    until = time.monotonic() + GIVES_UP_S
    while True:
        for path in (watched.store / "flight").glob("*.hang"):
            with suppress(FlightError), HangFile.open(path) as left:
                if any(e.last_look_ns - e.begin_ns >= for_ns for _, e in left.stalls()):
                    return
        assert time.monotonic() < until, "nothing is left of the hang"
        assert program.poll() is None
        time.sleep(0.02)


def finish(program: Hanging, end: Callable[[Hanging], int] = killed) -> None:
    status = end(program)
    assert program.wait(GIVES_UP_S) == status


def place(stall):
    culprit = stall["culprit"]
    return culprit and (culprit["function"], culprit["line"])


def only_stall(report):
    """The one that did not end. Before the hang a crowded machine may have stopped the loop, elsewhere."""
    (stall,) = [stall for stall in report["stalls"] if stall["state"] != "ended"]
    assert place(stall) not in [place(other) for other in report["stalls"] if other["state"] == "ended"]
    return stall


@pytest.mark.native
@every_end
def test_what_it_hung_in_is_reported_with_its_end(hanging, story):
    under, program = hanging(story.kind, NS_PER_S // 2)
    finish(program, story.end)

    report = under.report()

    culprit = MARKS.find(f"culprit of {story.kind}")
    (stall,) = [stall for stall in report["stalls"] if place(stall) == culprit]
    assert stall["state"] == story.state
    assert stall["cause"] in admitted(stall, (story.cause,)), stall["evidence"]
    assert stall["callback"]["task"] == f"task of {story.kind}"
    assert stall["duration_ms"] >= 500
    if story.state == "ended":
        assert stall["killed_by"]["reason"] == "os._exit: the program ended itself"
        assert (
            "ended by os._exit: the program ended itself" in under.tool("show", stall["fingerprint"]).stdout
        )
    (session,) = report["sessions"]
    assert (session["pid"], session["end"]) == (program.pid, "killed" if story.state == "killed" else "exit")
    assert session["ended_at"] is not None


@pytest.mark.native
def test_a_second_report_says_the_same(hanging):
    under, program = hanging("deadlock")
    finish(program)
    first, second = under.report(), under.report()
    first.pop("generated_at"), second.pop("generated_at")
    assert first == second
    assert list((under.store / "flight").iterdir()) == []


@pytest.mark.native
def test_the_next_start_with_the_same_store_recovers_it_too(hanging):
    under, program = hanging("endless_sleep", LOOPCANARY_KEEPER="0")  # who would take it in at once
    finish(program)
    (left,) = (under.store / "flight").glob("*.flight")

    # A keeper would be started by a stall only, which this program has on a busy machine alone.
    with under.start("-c", UNTIL_GONE, left, variables={"LOOPCANARY_KEEPER": "0"}) as following:
        assert following.wait(GIVES_UP_S) == 0

    assert not left.is_symlink()
    stall = only_stall(under.report())
    assert (stall["state"], place(stall)) == ("killed", MARKS.find("culprit of endless_sleep"))


@pytest.mark.native
def test_while_it_hangs_a_report_says_that_it_goes_on(hanging):
    under, program = hanging("endless_regex")
    report = under.report()
    finish(program)

    stall = only_stall(report)
    assert (stall["state"], place(stall)) == ("ongoing", MARKS.find("culprit of endless_regex"))
    (session,) = report["sessions"]
    assert (session["end"], session["ended_at"]) == ("running", None)
    assert only_stall(under.report())["state"] == "killed"


@pytest.mark.native
def test_a_hang_of_a_second_shows_what_all_threads_did(hanging):
    under, program = hanging("endless_regex", NS_PER_S + NS_PER_S // 10)
    finish(program)
    stall = only_stall(under.report())
    assert stall["severity"] == "hang"
    functions = {frame["function"] for thread in stall["threads"] for frame in thread["frames"]}
    assert {"endless_regex", "die_by_a_wild_pointer"} <= functions


@pytest.mark.parametrize(
    "story",
    [
        Story("SIGKILL in an endless sleep", "endless_sleep", killed, "sleep"),
        Story("SIGKILL in a deadlock", "deadlock", killed, "lock"),
        Story("SIGSEGV in an endless sleep", "endless_sleep", segfault_by_signal, "sleep"),
    ],
    ids=lambda story: story.sentence.replace(" ", "-"),
)
def test_the_portable_engine_leaves_it_from_a_second_on(hanging, story):
    under, program = hanging(story.kind, engine="portable")
    finish(program, story.end)

    report = under.report()

    stall = only_stall(report)
    assert (stall["kind"], stall["state"], stall["engine"]) == ("stall", "killed", "portable")
    assert (place(stall), stall["cause"]) == (MARKS.find(f"culprit of {story.kind}"), story.cause)
    assert stall["callback"]["task"] == f"task of {story.kind}"
    assert stall["duration_ms"] >= 1_000
    functions = {frame["function"] for thread in stall["threads"] for frame in thread["frames"]}
    assert "die_by_a_wild_pointer" in functions
    assert any(
        "1 other task of the loop could not run meanwhile: Task-1." in one for one in stall["evidence"]
    )
    (session,) = report["sessions"]
    assert (session["pid"], session["end"]) == (program.pid, "killed")
    assert list((under.store / "flight").iterdir()) == []


def test_what_the_portable_engine_left_is_there_until_its_process_has_ended(hanging):
    under, program = hanging("endless_sleep", engine="portable")
    assert only_stall(under.report())["state"] == "ongoing"
    (left,) = (under.store / "flight").glob("*.hang")
    # The next start takes it in, but not from the one that hangs.
    under.run("-c", "import asyncio; asyncio.run(asyncio.sleep(0))")
    assert left.exists()
    finish(program)
    with under.start("-c", UNTIL_GONE, left) as following:
        assert following.wait(GIVES_UP_S) == 0
    assert only_stall(under.report())["state"] == "killed"


IT_ENDS = """
import asyncio, os, sys, time, loopcanary
def hang():
    while not loopcanary.statistics()["hang_notes"]:
        time.sleep(0.01)
async def main():
    hang()
    while os.listdir(sys.argv[1]):
        await asyncio.sleep(0.01)
asyncio.run(main())
"""


def test_of_a_hang_that_ended_the_portable_engine_leaves_nothing(watched):
    under = watched("portable")
    under.run("-c", IT_ENDS, under.store / "flight")
    (stall,) = [one for one in under.report()["stalls"] if one["severity"] == "hang"]
    assert (stall["state"], stall["culprit"]["function"]) == ("ended", "hang")


NOT_STORED = """
import asyncio, sys, time, loopcanary
@loopcanary.on_issue
def never_ends(issue):
    if issue.severity.value == "hang":
        print("judged", flush=True)
        time.sleep(1e6)
    return issue
def hang():
    while not loopcanary.statistics()["hang_notes"]:
        time.sleep(0.01)
async def main():
    hang()
    await asyncio.sleep(1e6)
asyncio.run(main())
"""


def test_a_hang_that_had_ended_and_was_not_stored_is_no_killed_one(watched):
    under = watched("portable")
    with under.start("-c", NOT_STORED) as program:
        assert program.stdout.readline() == "judged\n"
        finish(program)
    stalls = [one for one in under.report()["stalls"] if one["severity"] == "hang"]
    assert [(one["state"], one["culprit"]["function"]) for one in stalls] == [("ended", "hang")]


@pytest.mark.native
def test_a_program_that_ends_well_leaves_no_file(watched):
    under = watched()
    # A stall would start a keeper, which may not have ended its work.
    under.run("--threshold", "1h", "-c", "import asyncio; asyncio.run(asyncio.sleep(0))")
    (session,) = under.report()["sessions"]
    assert session["end"] == "exit"
    assert list((under.store / "flight").iterdir()) == []
    assert [path for path in SHARED_MEMORY.glob("loopcanary-*") if session["id"] in path.name] == []
