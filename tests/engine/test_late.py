"""Programs without a keeper: what judges is loaded by their first stall, and not before."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys

import pytest

from loopcanary.assembly.doctor.programs import program_facts
from loopcanary.model import SessionEnd

from .watching import COUNTS_THREADS_LATE, Place

NATIVE = pytest.param("native", marks=pytest.mark.native)
BOTH = pytest.mark.parametrize("engine", [NATIVE, "portable"])
_TAKEN_OVER = """
    def taken_over():
        gives_up = time.monotonic() + 60
        while canary.kept is not None and time.monotonic() < gives_up:
            time.sleep(0.01)
        assert canary.kept is None
"""
JUDGES = '{*sys.modules} & {"loopcanary.assembly.engine", "loopcanary.store", "sqlite3"}'


def run(place: Place, program: str, *, engine: str = "native", status: int | None = 0):
    text = "    import loopcanary\n" + _TAKEN_OVER + "\n    canary = loopcanary.install()" + program
    return place.run(place.program(text), status=status, LOOPCANARY_KEEPER="0", LOOPCANARY_ENGINE=engine)


@BOTH
def test_the_first_stall_loads_what_judges(place: Place, engine: str):
    program = f"""
    asyncio.run(asyncio.sleep(0))
    print(*{JUDGES}, threading.active_count())
    stall("first")
    taken_over()
    stall("second")
    names = {{"first", "second"}}
    while not names <= {{stall.culprit.function for stall in canary.stalls if stall.culprit}}:
        time.sleep(0.01)
    """
    done = run(place, program, engine=engine)
    threads = 1 if engine == "native" else 2
    assert done.stdout.split() == [f"{threads}"]
    assert done.stderr == ""
    assert place.culprits() == ["first", "second"]


@BOTH
def test_a_program_without_a_stall_leaves_its_figures(place: Place, engine: str):
    program = f"\n    asyncio.run(asyncio.sleep(0))\n    print(canary.loops())\n    assert not {JUDGES}"
    run(place, program, engine=engine)
    (session,) = place.sessions().values()
    assert (session.end, len(session.loops)) == (SessionEnd.EXIT, 1)


@pytest.mark.native
def test_stalls_can_be_asked_for_before_that(place: Place):
    program = """
    asyncio.run(asyncio.sleep(0))
    canary.kept.backend.native.on_take_over(None)
    stall("first")
    while not (counts := loopcanary.statistics())["stalls_recorded"]:
        time.sleep(0.01)
    culprits = [stall.culprit for stall in canary.stalls if stall.culprit]
    blocks = [culprit.function for culprit in culprits if culprit.file.startswith("stalls/")]
    print(counts.get("stalls_reported"), *blocks, flush=True)
    os.kill(os.getpid(), 9)
    """
    done = run(place, program, status=-signal.SIGKILL)
    assert done.stdout.split() == ["None", "first"]
    assert place.culprits() == ["first"]


@BOTH
def test_a_fork_comes_in_between(place: Place, engine: str):
    program = """
    inside = threading.Event()
    def first_part():
        inside.set()
        while not canary._loading._forks:  # it ends when the fork has begun, which waits for that
            time.sleep(0.001)
    canary._loading._parts.insert(0, first_part)
    stall("first")
    inside.wait()
    child = os.fork()
    if child == 0:
        stall("child")
        loopcanary.uninstall()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    taken_over()
    stall("parent")
    """
    done = run(place, program, engine=engine)
    assert done.stderr == "" or COUNTS_THREADS_LATE
    assert place.culprits() == ["child", "first", "parent"]


@BOTH
def test_who_imports_what_is_loaded_may_ask_and_fork(place: Place, engine: str):
    """The load waits for a module that the program imports, and the program for nothing."""
    program = """
    from importlib import _bootstrap
    with _bootstrap._ModuleLockManager("loopcanary.store"):
        stall("first")
        deadline = time.monotonic() + 60
        while not canary._loading.is_busy() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert canary.kept is not None
        loopcanary.statistics(), canary.stalls, canary.loops()
        if os.fork() == 0:
            os._exit(0)
        os.wait()
    taken_over()
    stall("second")
    """
    run(place, program, engine=engine)
    assert place.culprits() == ["first", "second"]


@BOTH
def test_a_factory_that_exits_ends_nothing(place: Place, engine: str):
    program = """
    from loopcanary.registry import REGISTRY, REPORTERS
    REGISTRY.add(REPORTERS, "broken", lambda run: sys.exit("bad settings"))
    stall("first")
    taken_over()
    stall("second")
    """
    done = run(place, program, engine=engine)
    (line,) = done.stderr.splitlines()
    assert line == "loopcanary: reporter broken failed and is switched off: SystemExit: bad settings"
    assert place.culprits() == ["first", "second"]


@BOTH
@pytest.mark.parametrize("failing", ["make_engine", "drain"])
def test_a_load_that_fails_is_tried_again(place: Place, failing: str, engine: str):
    fails = {
        "make_engine": """
    make = canary._make_engine
    def fail(*given):
        canary._make_engine = make
        raise OSError("not now")
    asyncio.run(asyncio.sleep(0))
    canary._make_engine = fail
    """,
        "drain": """
    from loopcanary.engine.in_process.drain import Drain
    start = Drain.start
    def fail(self):
        Drain.start = start
        raise OSError("not now")
    Drain.start = fail
    """,
    }[failing]
    done = run(place, f'{fails}\n    stall("first")\n    taken_over()\n    stall("second")', engine=engine)
    (line,) = done.stderr.splitlines()
    assert line.startswith("loopcanary: judging failed; what stalls is not shown")
    assert line.endswith("not now")
    assert place.culprits() == ["first", "second"]


@BOTH
def test_a_short_program_takes_in_what_many_have_left(place: Place, engine: str):
    run(place, "\n    asyncio.run(asyncio.sleep(0))")
    [left] = (place.store / "flight").iterdir()
    for number in range(20):
        shutil.copy(left, left.with_name(f"20261129T000000-{number}-abcd.flight"))
    run(place, "\n    asyncio.run(asyncio.sleep(0))", engine=engine)
    assert len(list((place.store / "flight").iterdir())) <= 1


@BOTH
def test_a_program_that_finds_a_killed_one_takes_it_in(place: Place, engine: str):
    killed = place.program('stall("killed")\nos.kill(os.getpid(), 9)\n', name="killed.py")
    place.run(killed, status=-signal.SIGKILL, LOOPCANARY_KEEPER="0")
    [link] = [one for one in (place.store / "flight").iterdir() if one.is_symlink()]
    run(place, "\n    asyncio.run(asyncio.sleep(0))", engine=engine)
    assert not link.is_symlink()
    assert place.culprits() == ["killed"]


@pytest.mark.native
def test_neighbours_that_live_or_ended_are_no_remains(place: Place):
    quiet = "import asyncio, sys; asyncio.run(asyncio.sleep(0)); print(flush=True); sys.stdin.read()"
    environment = place.environment(LOOPCANARY_KEEPER="0")
    place.run("-c", quiet.replace("sys.stdin.read()", ""), LOOPCANARY_KEEPER="0")
    with subprocess.Popen(
        [sys.executable, "-c", quiet],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as living:
        assert living.stdout is not None
        living.stdout.readline()
        told = [row[-1] for row in program_facts(place.store)]
        program = """
    asyncio.run(asyncio.sleep(0))
    from loopcanary.engine.recorder import has_remains
    print(has_remains(canary.kept.backend.folder), canary.kept is not None)
    """
        done = run(place, program)
        living.communicate()
    assert done.stdout.split() == ["False", "True"]
    assert [one for one in told if one.endswith("takes its stalls itself: the settings say so")]


@BOTH
def test_a_hang_is_reported_while_it_lasts(place: Place, engine: str):
    program = """
    told = threading.Event()
    async def main():
        told.wait(60)  # by a reporter, while this goes on
    from loopcanary.registry import REGISTRY, REPORTERS
    class Reporter:
        name = "hears"
        def report(self, issue, repeats):
            print(issue.state.value, flush=True)
            told.set()
        def close(self, session, issues): ...
    REGISTRY.add(REPORTERS, "hears", lambda run: Reporter())
    asyncio.run(main())
    assert told.is_set()
    """
    done = run(place, program, engine=engine)
    assert done.stdout.split() == ["ongoing", "ended"]
