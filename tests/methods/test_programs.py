"""Whole programs whose calls are traced: the tree of their stalls is the one that the program knows."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.native
GIVES_UP_S = 280
BEGIN = """
import asyncio, os, sys, threading, time

def stall():
    time.sleep(0.15)

def loop(work):
    async def turn():
        work()
    asyncio.run(turn())
"""


class Program:
    """A script, run with its calls traced."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.printed = self.said = ""

    def start(
        self, script: str, *options: str, limit: int | None = None, **settings: str
    ) -> subprocess.Popen[str]:
        (self.folder / "app.py").write_text(BEGIN + script)
        clean = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
        clean |= settings
        command = (sys.executable, "-m", "loopcanary", "run", *options, "app.py")
        within = None if limit is None else partial(resource.setrlimit, resource.RLIMIT_FSIZE, (limit, limit))
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=clean,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=within,  # noqa: PLW1509 - no thread here
        )

    def run(self, script: str, *options: str, limit: int | None = None) -> list[dict[str, Any]]:
        """Its stalls."""
        with self.start(script, *(options or ("--methods", ".")), limit=limit) as program:
            self.printed, self.said = program.communicate(timeout=GIVES_UP_S)
        assert program.returncode == 0, self.said
        return self.stalls()

    def stalls(self) -> list[dict[str, Any]]:
        """Those that are stored, oldest first."""
        return sorted(self.report()["stalls"], key=lambda stall: stall["began_at"])

    def report(self) -> dict[str, Any]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
        command = (sys.executable, "-m", "loopcanary", "report", "--format", "json")
        done = subprocess.run(command, cwd=self.folder, env=clean, capture_output=True, text=True, check=True)
        report: dict[str, Any] = json.loads(done.stdout)
        return report


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


def tree(stall: dict[str, Any]) -> dict[str, tuple[int, bool]]:
    """Path of each row to the number of its calls, and whether one is open. Below `turn`, the stall's own."""
    found, path = {}, []
    for row in stall["calls"]["rows"]:
        path[row["depth"] :] = [row["function"]]
        if "turn" in path:
            found[" ".join(path[path.index("turn") :])] = (row["calls"], row["open"])
    return found


def with_work(stalls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those in which traced functions were called: a busy machine may add others."""
    return [stall for stall in stalls if stall["calls"]]


def with_calls(stalls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A busy machine may add stalls of its own."""
    return [stall for stall in stalls if stall["calls"] and any("stall" in path for path in tree(stall))]


def test_a_stall_has_each_call_in_it(program):
    script = """
def parse(text):
    return text.split(",")

def load(count):
    for _ in range(count):
        parse("a,b")

def work():
    load(300)
    load(200)
    stall()

loop(work)
"""
    [stall] = with_calls(program.run(script))
    assert tree(stall) == {
        "turn": (1, False),
        "turn work": (1, False),
        "turn work load": (2, False),
        "turn work load parse": (500, False),
        "turn work stall": (1, False),
    }
    rows = {row["function"]: row for row in stall["calls"]["rows"]}
    assert (stall["calls"]["lost"], stall["calls"]["left_out"]) == (0, 0)
    assert rows["stall"]["total_ms"] >= 150
    assert rows["work"]["total_ms"] <= stall["duration_ms"]
    assert rows["load"]["line"] == 1 + (BEGIN + script).splitlines().index("def load(count):")
    assert rows["<module>"]["open"]


def test_exceptions_generators_and_recursion_leave_no_call_open(program):
    script = """
def fail(depth):
    if depth:
        fail(depth - 1)
    raise ValueError(depth)

def rows(count):
    try:
        for number in range(count):
            yield number + 1
    finally:
        closed(count)

def closed(count):
    return str(count)

async def step():
    await asyncio.sleep(0)
    return len("x")

def leave():
    sys.exit(str(3))

def work():
    for _ in range(10):
        try:
            fail(2)
        except ValueError:
            pass
        try:
            leave()
        except SystemExit:
            pass
    sum(rows(5))
    half = rows(5)
    next(half)
    half.close()
    stepping = step()
    stepping.send(None)
    try:
        stepping.throw(KeyError())
    except KeyError:
        pass
    stall()

loop(work)
"""
    [stall] = with_calls(program.run(script))
    assert tree(stall) == {
        "turn": (1, False),
        "turn work": (1, False),
        "turn work fail": (10, False),
        "turn work fail fail": (10, False),
        "turn work fail fail fail": (10, False),
        "turn work leave": (10, False),
        "turn work rows": (6 + 2, False),  # a step is a call
        "turn work rows closed": (2, False),
        "turn work step": (2, False),
        "turn work stall": (1, False),
    }


def test_a_program_killed_in_a_hang_leaves_its_open_calls(program):
    script = """
def parse(text):
    return text.split(",")

def hang():
    parse("a")
    print("hangs", flush=True)
    time.sleep(600)

def work():
    parse("b")
    hang()

loop(work)
"""
    with program.start(script, "--methods", ".", "--threshold", "1ms") as running:
        assert running.stdout is not None
        running.stdout.readline()
        wait_until_sampled(program)
        running.send_signal(signal.SIGKILL)
    [stall] = [stall for stall in program.stalls() if stall["state"] == "killed"]
    assert tree(stall) == {
        "turn": (1, True),
        "turn work": (1, True),
        "turn work parse": (1, False),
        "turn work hang": (1, True),
        "turn work hang parse": (1, False),
    }
    assert not list(Path("/dev/shm").glob(f"*-{stall['session']}*"))


def wait_until_sampled(program: Program) -> None:
    """Until a report has a sample of the stall that goes on."""
    while not any(stall["state"] == "ongoing" and stall["samples"] for stall in program.stalls()):
        pass


WORK = """
class Wire:
    def on_read(self):
        part()

longest_s = 0.0

def part():
    global longest_s
    began = time.monotonic()
    time.sleep(0.03)  # of six the turn is a stall, and none by itself
    longest_s = max(longest_s, time.monotonic() - began)

async def worker():
    part()
    await asyncio.sleep(0)
    part()

async def main():
    loop = asyncio.get_running_loop()
    tasks = [asyncio.create_task(worker(), name=name) for name in ("north", "south", None, None)]
    loop.call_soon(Wire().on_read)
    loop.call_soon(Wire().on_read)
    loop.call_soon(os.path.join, "a", "b")
    await asyncio.gather(*tasks)

asyncio.run(main())
print(longest_s)
"""


@pytest.mark.parametrize(
    "options", [("--methods", "."), ("--methods", ".", "--locks")], ids=["plain", "locks"]
)
def test_calls_count_for_the_task_or_callback_that_made_them(program, options):
    """Two turns of short callbacks: no stall but of the whole turn."""
    turns = [
        stall
        for stall in with_work(program.run(WORK, *options, "--threshold", "150ms"))
        if any(one["name"] == "Wire.on_read" for one in stall["calls"]["work"])
    ]
    if float(program.printed) >= 0.15:
        pytest.skip("the machine stopped a callback, so that it is the stall")
    stall = turns[0]
    first = stall["calls"]["work"]
    assert {(one["name"], one["task"]): one["times"] for one in first} == {
        ("worker", "north"): 1,
        ("worker", "south"): 1,
        ("worker", None): 2,
        ("Wire.on_read", None): 2,
    }
    took = {(one["name"], one["task"]): one["total_ms"] for one in first}
    assert took["worker", "north"] >= 30
    assert took["worker", None] >= 60
    assert sum(took.values()) <= stall["duration_ms"]


MANY = """
import resource

def part(seconds=0.0):
    time.sleep(seconds)

async def job(steps):
    for _ in range(steps):
        part()
        await asyncio.sleep(0)

async def keeper():
    part(0.1)
    await asyncio.sleep(0)
    part(0.1)

LIMITS = resource.getrlimit(resource.RLIMIT_NOFILE)

async def without_descriptors():
    part(0.1)
    resource.setrlimit(resource.RLIMIT_NOFILE, LIMITS)
    await asyncio.sleep(0)
    part(0.1)

async def main():
    await without_descriptors()  # its function is known by then
    late = asyncio.create_task(without_descriptors(), name="late")
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, LIMITS[1]))
    await late
    kept = asyncio.create_task(keeper(), name="keeper")
    await asyncio.gather(kept, *[asyncio.create_task(job(2), name=f"job-{number}") for number in range(700)])

asyncio.run(main())
"""


def test_tasks_keep_their_names_however_many_there_are(program):
    found: dict[tuple[str, str | None], int] = {}
    for stall in with_work(program.run(MANY, "--methods", ".", "--threshold", "80ms")):
        if stall["scope"] == "callback":  # on a busy machine what is left of a turn is one, too
            for one in stall["calls"]["work"]:
                key = one["name"], one["task"]
                found[key] = found.get(key, 0) + one["times"]
    assert found["keeper", "keeper"] == 2
    # Where its name could not be written it has none, and has it when that can be done.
    assert found["without_descriptors", "late"] == 1


def test_overwritten_calls_are_counted_and_open_ones_kept(program):
    script = """
def parse(text):
    return text.split(",")

def work():
    stall()
    for _ in range(20_000):
        parse("a,b")

loop(work)
"""
    [stall] = [
        one
        for one in with_work(program.run(script, "--methods", ".", "--methods-ring", "32KiB"))
        if one["calls"]["lost"] and "turn" in tree(one)
    ]
    found = tree(stall)
    assert list(found) == ["turn", "turn work", "turn work parse"]
    assert found["turn work"] == (1, False)
    assert [one["name"] for one in stall["calls"]["work"]] == ["loop.<locals>.turn"]
    calls, _ = found["turn work parse"]
    assert calls <= 2048
    assert 20_000 * 2 - stall["calls"]["lost"] - 2 * calls in range(-2, 4097)


def test_watched_threads_are_traced_and_no_others(program):
    script = """
def elsewhere():
    return str(3)

def many():
    for _ in range(1000):
        elsewhere()

def work():
    other = threading.Thread(target=many)
    other.start()
    other.join()
    stall()

thread = threading.Thread(target=loop, args=(work,))
thread.start()
thread.join()
"""
    [stall] = with_calls(program.run(script))
    assert tree(stall) == {"turn": (1, False), "turn work": (1, False), "turn work stall": (1, False)}


def test_a_forked_child_writes_nothing_into_its_parents_files(program):
    script = """
def counted():
    return str(3)

def work():
    child = os.fork()
    for _ in range(7 if child else 5000):
        counted()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    stall()

loop(work)
"""
    [stall] = [one for one in with_calls(program.run(script)) if "turn work counted" in tree(one)]
    assert tree(stall)["turn work counted"] == (7, False)


OFF = """
import loopcanary
canary = loopcanary.install()

def busy():
    return str(3)

busy()
before = canary.statistics()["methods_known"]
loopcanary.uninstall()
assert before >= 1
if hasattr(sys, "monitoring"):
    for tool in range(6):
        if sys.monitoring.get_tool(tool) is None:
            sys.monitoring.use_tool_id(tool, "test")
            assert sys.monitoring.get_events(tool) == 0
            assert sys.monitoring.get_local_events(tool, busy.__code__) == 0
            sys.monitoring.free_tool_id(tool)
loopcanary.install(methods=["."])
loop(lambda: (busy(), stall()))
"""


def test_switched_off_no_event_is_left_and_it_can_be_switched_on(program):
    [stall] = with_calls(program.run(OFF))
    assert any(path.endswith("busy") for path in tree(stall))


def test_where_there_is_no_room_it_has_less_and_says_so(program):
    """The limit is between the flight file and the larger file of calls."""
    options = ("--methods", ".", "--methods-ring", "16MiB")
    [stall] = with_calls(program.run("loop(stall)", *options, limit=12_000_000))
    assert "methods: there is room for the last 524,288 calls of a thread, not 1,048,576" in program.said
    assert "turn stall" in tree(stall)


@pytest.mark.skipif(not hasattr(sys, "monitoring"), reason="from 3.12 on")
def test_where_other_tools_have_all_places_it_says_so(program):
    script = """
import loopcanary
loopcanary.uninstall()
for tool in (2, 3, 4):
    sys.monitoring.use_tool_id(tool, f"tool {tool}")
loopcanary.install(methods=["."])
loop(stall)
"""
    stalls = program.run(script, "--name", "no methods")
    assert {stall["calls"] for stall in stalls} == {None}
    assert "methods failed and is switched off" in program.said
    assert "tool 4, tool 3, tool 2" in program.said


@pytest.mark.skipif(hasattr(sys, "monitoring"), reason="before 3.12")
def test_a_profiler_that_runs_is_left_alone(program):
    script = """
import cProfile
cProfile.Profile().enable()
import loopcanary
loopcanary.uninstall()
loopcanary.install(methods=["."])
loop(stall)
"""
    stalls = program.run(script)
    assert {stall["calls"] for stall in stalls} == {None}
    assert "another profiler runs" in program.said


def test_the_report_shows_the_calls(program):
    [stall] = with_calls(program.run("loop(stall)"))
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
    shown = {}
    for form in ("text", "markdown", "html"):
        what = ("report",) if form == "html" else ("show", stall["id"])
        command = (sys.executable, "-m", "loopcanary", *what, "--format", form)
        done = subprocess.run(
            command, cwd=program.folder, env=clean, capture_output=True, text=True, check=True
        )
        shown[form] = done.stdout
    assert all("turn" in text and "not returned" in text for text in shown.values())
