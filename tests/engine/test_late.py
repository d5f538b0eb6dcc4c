"""Programs that judge their stalls themselves: their drain loads what that takes, at their start."""

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
PATIENCE = """
    # On a busy host an end or a fork waits longer for our threads.
    from loopcanary.engine import drain as _drain, fork_pause as _pause
    _drain._FINISH_S = _pause._IMPORT_PATIENCE_S = 60
"""
LOAD = """
    from loopcanary.engine.running import RunningEngine
    real_load = RunningEngine._loaded
"""


UNSETTLED = """
    # As where a loop starts the engine: the program goes on beside the load.
    from loopcanary.engine.canary import Canary as _Canary
    _Canary.settle = lambda self: None
"""


def run(place: Place, program: str, *, engine: str = "native", status: int | None = 0, before: str = ""):
    text = f"    import loopcanary\n{PATIENCE}{before}\n    canary = loopcanary.install()\n{program}"
    return place.run(place.program(text), status=status, LOOPCANARY_KEEPER="0", LOOPCANARY_ENGINE=engine)


@BOTH
def test_the_drain_loads_what_judges(place: Place, engine: str):
    before = (
        """
    import _thread
    loaders = set()
    """
        + LOAD
        + """
    def load(self):
        loaders.add(_thread.get_ident())
        return real_load(self)
    RunningEngine._loaded = load
    """
    )
    program = """
    stall("first")
    names = set()
    while "first" not in names:
        names = {stall.culprit.function for stall in canary.stalls if stall.culprit}
        time.sleep(0.01)
    print(_thread.get_ident() in loaders, len(loaders), "loopcanary.diagnosis" in sys.modules)
    """
    done = run(place, program, engine=engine, before=before)
    assert done.stdout.split() == ["False", "1", "True"]
    assert done.stderr == ""
    assert place.culprits() == ["first"]


@BOTH
def test_nobody_waits_for_what_was_loaded_at_once(place: Place, engine: str):
    before = (
        """
    import threading
    from loopcanary.engine import running
    is_loaded = threading.Event()
    """
        + LOAD
        + """
    def load(self):
        try:
            return real_load(self)
        finally:
            is_loaded.set()
    RunningEngine._loaded = load
    real_start = running.Drain.start
    def start(self):
        real_start(self)
        is_loaded.wait()  # the starting thread gets no core before
    running.Drain.start = start
    running.wait_while = lambda is_loading: print("waits")
    """
    )
    done = run(place, "    print(len(canary.statistics()['loops']))", engine=engine, before=before)
    assert (done.stdout, done.stderr) == ("0\n", "")


@BOTH
def test_a_program_without_a_stall_leaves_its_figures(place: Place, engine: str):
    run(place, "    asyncio.run(asyncio.sleep(0))\n    assert canary.loops()", engine=engine)
    (session,) = place.sessions().values()
    assert (session.end, len(session.loops)) == (SessionEnd.EXIT, 1)


@BOTH
def test_a_fork_comes_in_between(place: Place, engine: str):
    before = (
        LOAD
        + UNSETTLED
        + """
    inside = threading.Event()
    def load(self):
        RunningEngine._loaded = real_load
        inside.set()
        while "canary" not in globals() or not canary._forks:
            time.sleep(0.001)  # the load ends when the fork has begun, which waits for that
        return real_load(self)
    RunningEngine._loaded = load
    """
    )
    program = """
    inside.wait()
    child = os.fork()
    if child == 0:
        stall("child")
        loopcanary.uninstall()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    stall("parent")
    """
    done = run(place, program, engine=engine, before=before)
    assert done.stderr == "" or COUNTS_THREADS_LATE
    assert place.culprits() == ["child", "parent"]


@BOTH
def test_who_imports_what_is_loaded_may_ask_and_fork(place: Place, engine: str):
    """The load waits for a module that the program imports, and the program for nothing."""
    before = (
        UNSETTLED
        + """
    from loopcanary.engine import canary as _canary
    _canary._START_PATIENCE_S = _pause._IMPORT_PATIENCE_S = 120
    from importlib import _bootstrap
    is_imported = _bootstrap._ModuleLockManager("loopcanary.store")
    is_imported.__enter__()
    """
    )
    program = """
    while not canary._engine.drain.is_importing():
        time.sleep(0.01)
    def ask():
        began = time.monotonic()
        loopcanary.statistics(), canary.stalls, canary.loops()
        if os.fork() == 0:
            os._exit(0)
        os.wait()
        print(time.monotonic() - began < 60)
    names = {"ask": ask}
    exec(compile("def find_and_load(): ask()", "<frozen importlib._bootstrap>", "exec"), names)
    names["find_and_load"]()
    is_imported.__exit__(None, None, None)
    stall("first")
    """
    done = run(place, program, engine=engine, before=before)
    assert done.stdout == "True\n"
    assert place.culprits() == ["first"]


@BOTH
def test_what_judges_is_loaded_before_the_programs_own_code(place: Place, engine: str):
    done = run(place, "    print(canary._engine.parts is not None)", engine=engine)
    assert (done.stdout, done.stderr) == ("True\n", "")


@BOTH
def test_a_plugin_that_is_loaded_may_ask_for_the_engine(place: Place, engine: str):
    before = """
    from loopcanary.registry import REGISTRY, REPORTERS
    def make(run):
        loopcanary.install()
        return None
    REGISTRY.add(REPORTERS, "asks", make)
    """
    done = run(place, '    stall("first")', engine=engine, before=before)
    assert "asks" not in done.stderr, done.stderr
    assert place.culprits() == ["first"]


@BOTH
def test_no_load_comes_into_an_import_of_the_programs(place: Place, engine: str):
    """A module iterates over `sys.modules` while it is made; shiboken's ends the process if that fails."""
    before = (
        UNSETTLED
        + """
    is_waiting = threading.Event()
    wait_while = _pause.wait_while
    def wait(is_importing, patience_s=None):
        wait_while(lambda: is_importing() and not is_waiting.set(), 120)
    _pause.wait_while = wait
    import iterates
    """
    )
    module = """
    import sys, time, __main__
    __main__.loopcanary.install()
    assert __main__.is_waiting.wait(60)
    for name in sys.modules:
        time.sleep(0.0001)
    """
    place.program(module, "iterates.py", prelude="")
    done = run(place, '    stall("first")', engine=engine, before=before)
    assert done.stderr == ""
    assert place.culprits() == ["first"]


@BOTH
def test_a_factory_that_exits_ends_nothing(place: Place, engine: str):
    before = """
    from loopcanary.registry import REGISTRY, REPORTERS
    REGISTRY.add(REPORTERS, "broken", lambda run: sys.exit("bad settings"))
    """
    done = run(place, '    stall("first")', engine=engine, before=before)
    (line,) = done.stderr.splitlines()
    assert line == (
        "loopcanary: reporter broken failed and is switched off: RuntimeError: SystemExit('bad settings')"
    )
    assert place.culprits() == ["first"]


@BOTH
def test_a_load_that_fails_is_tried_again(place: Place, engine: str):
    before = """
    from loopcanary.engine import running
    from loopcanary.engine.canary import Canary
    running._AGAIN_S = 0.05
    load = Canary.load_on_drain
    def fail(self, make):
        Canary.load_on_drain = load
        raise OSError("not now")
    Canary.load_on_drain = fail
    """
    program = """
    stall("first", 1)  # how many samples there are is not known yet
    while not canary.stalls:
        time.sleep(0.01)
    """
    done = run(place, program, engine=engine, before=before)
    (line,) = done.stderr.splitlines()
    assert line.startswith("loopcanary: judging failed; stalls are not shown")
    assert line.endswith("not now")
    assert place.culprits() == ["first"]


@pytest.mark.native
def test_what_could_not_be_loaded_is_left_to_the_next_report(place: Place):
    before = """
    from loopcanary.engine.canary import Canary
    def fail(self, make):
        raise OSError("never")
    Canary.load_on_drain = fail
    """
    done = run(place, '    stall("first")\n    print(canary.stalls, canary.loops())', before=before)
    assert done.stdout == "[] ()\n"
    assert len(done.stderr.splitlines()) == 1
    assert place.culprits() == ["first"]


@BOTH
def test_without_a_drain_the_end_judges(place: Place, engine: str):
    before = """
    from loopcanary.engine.drain import Drain
    def fail(self):
        raise OSError("no thread")
    Drain.start = fail
    """
    done = run(place, '    stall("first")', engine=engine, before=before)
    (line,) = done.stderr.splitlines()
    assert line.startswith("loopcanary: judging failed; stalls are not shown")
    assert line.endswith("no thread")
    assert place.culprits() == ["first"]


@BOTH
def test_a_program_that_ends_while_it_is_loaded_loses_nothing(place: Place, engine: str):
    run(place, '    stall("first", 0.12)', engine=engine)
    assert place.culprits() == ["first"]


@BOTH
def test_a_short_program_takes_in_what_many_have_left(place: Place, engine: str):
    clean = place.program("asyncio.run(asyncio.sleep(0))")
    place.run(clean, LOOPCANARY_KEEPER="1", LOOPCANARY_THRESHOLD="1h")  # no keeper is started for a stall
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
def test_doctor_says_who_judges_by_the_settings(place: Place):
    quiet = "import asyncio, sys; asyncio.run(asyncio.sleep(0)); print(flush=True); sys.stdin.read()"
    environment = place.environment(LOOPCANARY_KEEPER="0")
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
        living.communicate()
    assert [one for one in told if one.endswith("diagnoses its own stalls: the settings say so")]


@BOTH
def test_a_hang_is_reported_while_it_lasts(place: Place, engine: str):
    before = """
    told = threading.Event()
    async def main():
        told.wait(60)  # by a reporter, while this goes on
    from loopcanary.registry import REGISTRY, REPORTERS
    class Reporter:
        name = "hears"
        def report(self, issue, repeats):
            print(issue.id, issue.state.value, flush=True)
            if issue.state.value == "ongoing":
                told.set()
        def close(self, session, issues): ...
    REGISTRY.add(REPORTERS, "hears", lambda run: Reporter())
    """
    program = "    asyncio.run(main())\n    assert told.is_set()"
    done = run(place, program, engine=engine, before=before)
    of_each: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():  # a busy machine may have others, and tell of this one twice
        stall, state = line.split()
        of_each.setdefault(stall, []).append(state)
    [states] = [states for states in of_each.values() if "ongoing" in states]
    assert list(dict.fromkeys(states)) == ["ongoing", "ended"]


def test_no_thread_of_ours_is_the_first_to_import_importlib(place):
    """Who imports importlib.machinery meanwhile makes a second importlib._bootstrap, which cannot import."""
    program = place.program("import sys; print('importlib' in sys.modules)", prelude="")
    assert place.run("-m", "loopcanary", "run", "--quiet", program).stdout == "True\n"
