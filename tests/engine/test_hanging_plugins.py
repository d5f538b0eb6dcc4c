"""Code of third parties that does not come back: the program goes on, and people are told which it is."""

from __future__ import annotations

import re
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from loopcanary.assembly.store import open_store
from loopcanary.engine import Boundary, apart
from loopcanary.engine.apart import Apart
from loopcanary.model import SessionEnd, TracerState
from loopcanary.model.search import OTHERS
from loopcanary.model.tracer_states import TracerStep
from loopcanary.tracers.life import TracerLife

from .watching import COUNTS_THREADS_LATE, GIVES_UP_S, PATIENT_FORKS, PATIENT_PLUGINS, PRELUDE, Place

PLUGIN = """
import os
import signal
import sys
import threading
import time

from loopcanary.model import Startup
from loopcanary.registry import LoopKind

HANGS = os.environ.get("HANGS")
OVER = threading.Event()
DONE = threading.Event()

def here(where):
    if where == HANGS:
        print("hangs", file=sys.stderr, flush=True)
        OVER.wait()

here("import")

class Tracer:
    name = "mine"
    on_program_thread = bool(os.environ.get("ON_PROGRAM_THREAD"))

    def __init__(self):
        here("make")

    def init(self, desk):
        self.desk = desk
        here("init")

    def start(self):
        print("starts", flush=True)
        here("start")
        print("started", self.desk.report(
            Startup(began_wall_ns=time.time_ns(), duration_ns=5, threshold_ns=4, title="late")
        ), flush=True)

    def stop(self):
        print("stops", flush=True)
        here("stop")
        DONE.set()

    def counts(self):
        here("counts")
        return [1] if HANGS == "list" else {}

class Reporter:
    name = "mine"

    def report(self, issue, repeated):
        pass

    def close(self, session, stalls):
        here("close")

    def counts(self):
        here("counts of a reporter")
        return {}

def make_reporter(run):
    here("reporter")
    return Reporter()

def interceptor(issue):
    return issue

def probe(*parts):
    here("probe")
"""
ENTRY_POINTS = """\
[loopcanary.tracers]
mine = hanging_plugin:Tracer
"""
OF_A_REPORTER = "[loopcanary_tools.reporters]\nmine = hanging_plugin:make_reporter\n"
OF_AN_INTERCEPTOR = "[loopcanary_tools.interceptors]\nmine = hanging_plugin:interceptor\n"
LINE = PLUGIN.splitlines().index("        OVER.wait()") + 1


UNTIL_IT_HANGS = f"""\
def _until_it_hangs():
    # A plugin is given up when it hangs, and not where a busy host runs it late.
    from time import monotonic
    from loopcanary.engine.apart import Apart
    from loopcanary.thread_frames import thread_frames

    def hangs():
        for frame in thread_frames().values():
            while frame is not None:
                if (frame.f_code.co_name, frame.f_lineno) == ("here", {LINE}):
                    return True
                frame = frame.f_back
        return False

    def started(self, run, start=Apart._started):
        thread = start(self, run)
        if thread is None:  # CPython 3.12 gives none while the interpreter ends
            return None
        join = thread.join

        def patient(timeout_s):
            is_over, gives_up = join(timeout_s), monotonic() + 60
            while not (is_over or hangs()) and monotonic() < gives_up:
                is_over = join(0.05)
            return is_over

        thread.join = patient
        return thread

    Apart._started = started
_until_it_hangs()
"""


def plugged_in(place: Place, entry_points: str = ENTRY_POINTS) -> str:
    folder = place.folder / "plugins"
    metadata = folder / "mine-1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(entry_points)
    (folder / "hanging_plugin.py").write_text(PLUGIN)
    return str(folder)


def hangs_in(folder: str) -> str:
    return f"in {Path(folder) / 'hanging_plugin.py'}:{LINE}, here"


def failed(folder: str, part: str) -> str:
    why = f"TimeoutError: it has not returned after 2 s, {hangs_in(folder)}"
    return f"loopcanary: {part} failed and is switched off: {why}"


PROGRAM = """
    import loopcanary
    loopcanary.install()
    stall("seen")
    print("end", [name for name in loopcanary.statistics() if name.startswith("failures")], flush=True)
"""


def hanging(place: Place, text: str) -> Path:
    return place.program(text, prelude=UNTIL_IT_HANGS + PRELUDE)


UNTIL_IT_FAILED = """
    while not any(name.startswith("failures") for name in loopcanary.statistics()):
        time.sleep(0.01)
"""


@pytest.mark.parametrize("engine", [pytest.param("native", marks=pytest.mark.native), "portable"])
@pytest.mark.parametrize("where", ["import", "make", "init", "start"])
def test_a_tracer_that_hangs_is_given_up_and_said_once(place: Place, where: str, engine: str):
    plugins = plugged_in(place)
    done = place.run(
        hanging(place, PROGRAM), PYTHONPATH=plugins, HANGS=where, LOOPCANARY="", LOOPCANARY_ENGINE=engine
    )
    part = "plugin mine" if where == "import" else "tracer mine"
    assert done.stdout.splitlines()[-1] == f"end ['failures_{part}']"
    assert [line for line in done.stderr.splitlines() if "mine" in line] == [failed(plugins, part)]
    assert "stops" not in done.stdout
    assert place.culprits() == ["seen"]


@pytest.mark.parametrize(
    ("group", "where", "part"),
    [
        (OF_A_REPORTER, "reporter", "reporter mine"),
        (OF_A_REPORTER, "import", "plugin mine"),
        (OF_AN_INTERCEPTOR, "import", "plugin mine"),
    ],
)
def test_other_plugins_that_hang_are_given_up(place: Place, group: str, where: str, part: str):
    plugins = plugged_in(place, group)
    done = place.run(
        hanging(place, PROGRAM + UNTIL_IT_FAILED),
        PYTHONPATH=plugins,
        HANGS=where,
        LOOPCANARY="",
        LOOPCANARY_KEEPER="0",
    )
    assert failed(plugins, part) in done.stderr.splitlines()
    assert place.culprits() == ["seen"]


@pytest.mark.parametrize("keeper", ["0", "1"])
def test_a_stop_that_hangs_is_named_and_nothing_is_lost(place: Place, keeper: str):
    plugins = plugged_in(place)
    done = place.run(
        hanging(place, PROGRAM), PYTHONPATH=plugins, HANGS="stop", LOOPCANARY="", LOOPCANARY_KEEPER=keeper
    )
    [line] = [line for line in done.stderr.splitlines() if "mine" in line]
    assert line.startswith("loopcanary: end of tracer mine failed")
    assert line.endswith(hangs_in(plugins))
    assert place.culprits() == ["seen"]
    [session] = place.sessions().values()
    assert session.end is SessionEnd.EXIT


@pytest.mark.native
@pytest.mark.parametrize("keeper", ["0", "1"])
@pytest.mark.parametrize(
    ("where", "why"),
    [("counts", "TimeoutError: it has not returned"), ("list", "TypeError: it did not return a dict")],
)
def test_counts_that_hang_or_are_none_cost_themselves(place: Place, where: str, why: str, keeper: str):
    plugins = plugged_in(place)
    done = place.run(
        hanging(place, PROGRAM), PYTHONPATH=plugins, HANGS=where, LOOPCANARY="", LOOPCANARY_KEEPER=keeper
    )
    assert "end ['failures_tracer mine: counts']" in done.stdout.splitlines()
    [line] = [line for line in done.stderr.splitlines() if "mine" in line]
    assert line.startswith(f"loopcanary: tracer mine: counts failed and is switched off: {why}")
    assert place.culprits() == ["seen"]


@pytest.mark.parametrize("where", ["close", "counts of a reporter"])
def test_a_reporters_end_that_hangs_is_given_up(place: Place, where: str):
    plugins = plugged_in(place, OF_A_REPORTER)
    done = place.run(
        hanging(place, PROGRAM), PYTHONPATH=plugins, HANGS=where, LOOPCANARY="", LOOPCANARY_KEEPER="0"
    )
    part = "reporter mine" if where == "close" else "counts of mine"
    assert failed(plugins, part) in done.stderr.splitlines()
    [session] = place.sessions().values()
    assert session.end is SessionEnd.EXIT


BOTH = ENTRY_POINTS + OF_A_REPORTER + OF_AN_INTERCEPTOR
FORKS = """
    import loopcanary
    loopcanary.install()
    stall("seen")
    if (pid := os.fork()) == 0:
        stall("child")
        loopcanary.uninstall()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
"""


@pytest.mark.native
@pytest.mark.parametrize("where", ["import", "start"])
def test_it_is_waited_for_once_and_not_in_a_forked_child(place: Place, where: str):
    plugins = plugged_in(place, BOTH)
    done = place.run(
        hanging(place, FORKS), PYTHONPATH=plugins, HANGS=where, LOOPCANARY="", LOOPCANARY_KEEPER="0"
    )
    assert (done.stderr.count("hangs"), done.stderr.count("has not returned")) == (1, 1)
    assert place.culprits() == ["child", "seen"]


LATE = """
    import loopcanary
    loopcanary.install()
    import hanging_plugin
    print(loopcanary.start_tracers("mine"), flush=True)
    hanging_plugin.OVER.set()
    hanging_plugin.DONE.wait()
    print(loopcanary.start_tracers("mine"), flush=True)
"""


@pytest.mark.parametrize("where", ["init", "start"])
def test_one_that_comes_back_later_is_stopped_and_stays_off(place: Place, where: str):
    done = place.run(hanging(place, LATE), PYTHONPATH=plugged_in(place), HANGS=where, LOOPCANARY="")
    refused = "{'mine': 'it has failed, and is switched off'}"
    begun = ["starts", refused, "started False"] if where == "start" else [refused]
    assert done.stdout.splitlines() == [*begun, "stops", refused]
    opened = open_store(place.store)
    assert opened.reader.issues(OTHERS) == []
    opened.close()


NAMED = """
    import os
    import loopcanary
    if os.environ.get("IMPORTS"):
        import half_imported
    loopcanary.install()
    print("runs", flush=True)
"""


def lines_until_the_end(process: subprocess.Popen[bytes], goes_on: str) -> list[str]:
    """Of stderr; SIGUSR1 ends the hang when a line has these words."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line.decode().rstrip())
        if goes_on in lines[-1]:
            process.send_signal(signal.SIGUSR1)
    assert process.wait(GIVES_UP_S) == 0
    return lines


@pytest.mark.parametrize(
    ("where", "part", "more"),
    [
        ("start", "tracer mine", {"ON_PROGRAM_THREAD": "1"}),
        ("import", "plugin mine", {"IMPORTS": "1"}),
        ("probe", "probe mine", {}),
    ],
    ids=["a tracer that wants to", "in the middle of an import", "a probe"],
)
def test_what_holds_up_the_program_is_named_while_it_hangs(
    place: Place, where: str, part: str, more: dict[str, str]
):
    entry_points = ENTRY_POINTS
    if where == "probe":
        entry_points = "[loopcanary.loops]\nmine = hanging_plugin:KIND\n"
    plugins = plugged_in(place, entry_points)
    plugin = Path(plugins) / "hanging_plugin.py"
    plugin.write_text(
        PLUGIN.replace("OVER.wait()", "signal.signal(signal.SIGUSR1, lambda *_: OVER.set()); OVER.wait()")
        + 'KIND = LoopKind("mine", awaits=["json"], probe="hanging_plugin:probe")\n'
    )
    (place.folder / "half_imported.py").write_text("import loopcanary\nloopcanary.install()\n")
    process = place.start(
        place.program(NAMED, prelude="import json\n"),
        env=place.environment(PYTHONPATH=plugins, HANGS=where, LOOPCANARY="", **more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    lines = lines_until_the_end(process, hangs_in(plugins))
    told = re.compile(
        rf"loopcanary: {part} has blocked the calling thread for \d+ s, {re.escape(hangs_in(plugins))}"
    )
    assert any(map(told.fullmatch, lines)), lines
    assert process.stdout is not None
    assert process.stdout.read().decode().splitlines()[-1].split()[0] in ("runs", "stops")


@pytest.mark.native
@pytest.mark.skipif(COUNTS_THREADS_LATE, reason="this CPython counts threads when its fork hooks have run")
@pytest.mark.parametrize("on_program_thread", ["", "1"])
def test_a_plugin_that_has_started_leaves_no_thread(place: Place, on_program_thread: str):
    program = place.program(
        """
        import warnings
        import loopcanary
        warnings.simplefilter("error")
        loopcanary.install()
        if (pid := os.fork()) == 0:
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        """,
        prelude=PRELUDE + PATIENT_FORKS + PATIENT_PLUGINS,
    )
    done = place.run(
        program, PYTHONPATH=plugged_in(place), ON_PROGRAM_THREAD=on_program_thread, LOOPCANARY=""
    )
    assert "multi-threaded" not in done.stderr


def test_the_doctor_names_a_plugin_whose_import_hangs(place: Place):
    plugins = plugged_in(place)
    rows = place.run(
        "-c",
        UNTIL_IT_HANGS
        + "from loopcanary.assembly.doctor import doctor_facts; print(*doctor_facts(), sep='\\n')",
        PYTHONPATH=plugins,
        HANGS="import",
        LOOPCANARY="",
    ).stdout.splitlines()
    [row] = [row for row in rows if row.startswith("('tracer mine'")]
    assert "'problem'" in row
    assert hangs_in(plugins) in row


# ---- the parts, without a program --------------------------------------------------------------


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Apart:
    """It waits for nothing."""
    monkeypatch.setattr(apart, "PATIENCE_S", 0.0)
    return Apart(None, lambda _: None)


def test_what_is_raised_apart_is_raised_here():
    def fail(error: BaseException) -> None:
        raise error

    here = Apart(None, lambda _: None)
    with pytest.raises(KeyError):
        here.bounded(lambda: fail(KeyError("mine")))
    with pytest.raises(RuntimeError, match="SystemExit"):
        here.bounded(lambda: fail(SystemExit(3)))
    assert here.bounded(threading.get_ident) != threading.get_ident()
    assert here.named("mine", threading.get_ident) == threading.get_ident()


@pytest.mark.parametrize("step", [TracerStep.START, TracerStep.STOP])
def test_a_step_that_goes_on_keeps_its_turn(impatient: Apart, step: TracerStep):
    boundary, over, done = Boundary(lambda _: None), threading.Event(), threading.Event()
    did: list[str] = []

    def make(each: TracerStep) -> None:
        if each is step:
            over.wait()
        did.append(each.value)

    def call(part: str, function: Any, /, *, keep: bool = False) -> Any:
        if part.removeprefix("end of ") == "tracer mine" and step in (TracerStep.START, TracerStep.STOP):
            bounded = impatient.bounded if is_slow() else _at_once
            return boundary.call(part, lambda: bounded(function), keep=keep)
        return function()

    def is_slow() -> bool:
        return life.state.value == {"start": "started", "stop": "stopped"}[step.value] and not done.is_set()

    life = TracerLife("mine", {each: lambda each=each: make(each) for each in TracerStep}, call=call)  # type: ignore[misc]
    life.step(TracerStep.INIT)
    life.step(TracerStep.START)
    if step is TracerStep.STOP:
        life.step(TracerStep.STOP)
    assert life.step(TracerStep.DESTROY) is not None
    life.end()  # waits for nothing
    assert step.value not in did
    done.set()
    over.set()
    deadline = time.monotonic() + GIVES_UP_S
    while "stop" not in did and time.monotonic() < deadline:
        time.sleep(0.002)
    assert did == ["init", "start", "stop"]
    assert life.has_failed is (step is TracerStep.START)
    assert life.state is TracerState.STOPPED


def _at_once(function: Any) -> Any:
    return function()
