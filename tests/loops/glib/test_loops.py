"""Main loops of GLib's: every block is seen once, at its line, with its cause, length and source; quiet ones
are quiet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.loops.slept import by_sleep
from tests.program.test_detection import MARKS, STORIES, Run
from tests.program.watching import PROGRAMS, Marks, Watched, admitted, is_by_the_host, unexplained

pytestmark = pytest.mark.native

PROGRAM = Path(__file__).parent / "loop_blocks.py"
QUIET = Path(__file__).parent / "quiet_loop.py"
OWN_MARKS = Marks(PROGRAM.read_text())
SHARED = (
    *("regex", "json_body", "c_call_with_the_gil", "c_call_without_the_gil", "password_hash", "compress"),
    *("collection", "python_loop", "slow_import", "sleep", "held_lock", "empty_queue", "thread_join"),
    *("child_process", "synced_file", "gil_hog"),
)
CAUSES = {story.kind: story.causes for story in STORIES if story.kind in SHARED}
OWN = {
    # kind: (the mark, the culprit's function, how the source is called)
    "idle": ("when_idle", "when_idle", "idle: idle.<locals>.when_idle"),
    "signal": ("on_poked", "on_poked", "timeout: Thing.emit"),
    "signal_of_a_watch": ("on_poked_by_a_watch", "on_poked", "poked: signal_of_a_watch.<locals>.on_poked"),
    "io_watch": ("readable", "readable", None),
    "in_an_inner_loop": ("inside", "inside", "timeout: in_an_inner_loop.<locals>.inside"),
    "after_an_inner_loop": ("opens", "opens", "timeout: after_an_inner_loop.<locals>.opens"),
    "context_of_its_own": ("context_of_its_own", "inside", None),
}
LOOPS_OF_TWO_LINES = {"gil_hog"}
TOLERANCE_MS = 2.0


class LoopRun(Run):
    """One run of the program."""

    def __init__(self, interpreter: Any, folder: Path, kinds: tuple[str, ...]) -> None:
        self.tolerance_ms = TOLERANCE_MS
        store, truth_file = folder / "store", folder / "truth.json"
        interpreter.run(PROGRAM, PROGRAMS, store, truth_file, folder, *kinds)
        self.truth = {facts["name"]: facts for facts in json.loads(truth_file.read_text())}
        self.report = Watched(store=store, engine="native").report()
        self.stalls = self.report["stalls"]


@pytest.fixture(scope="module")
def run(interpreter: Any, tmp_path_factory: pytest.TempPathFactory) -> LoopRun:
    return LoopRun(interpreter, tmp_path_factory.mktemp("loop"), (*SHARED, *OWN))


def assert_length(run: LoopRun, kind: str) -> dict[str, Any]:
    stall, facts = run.stall_of(kind), run.truth[kind]
    assert stall["duration_ms"] < (facts["after_ns"] - facts["before_ns"]) / 1e6 + TOLERANCE_MS
    assert stall["duration_ms"] > (facts["end_ns"] - facts["begin_ns"]) / 1e6 - TOLERANCE_MS
    assert stall["loop"] == "glib"
    return stall


@pytest.mark.parametrize("kind", SHARED)
def test_a_timeout_that_blocks(run, kind):
    stall = assert_length(run, kind)
    assert stall["cause"] in admitted(stall, CAUSES[kind]), stall["evidence"]
    function, line = MARKS.find(f"culprit of {kind}")
    assert stall["culprit"]["function"] == function
    assert stall["culprit"]["line"] in ((line, line + 1) if kind in LOOPS_OF_TWO_LINES else (line,))
    assert stall["callback"]["name"] == "timeout: by_timeout.<locals>.call"


@pytest.mark.parametrize("kind", OWN)
def test_a_source_that_blocks(run, kind):
    mark, function, name = OWN[kind]
    stall = assert_length(run, kind)
    line = OWN_MARKS.find(f"culprit of {mark}")[1]
    assert (stall["culprit"]["function"], stall["culprit"]["line"]) == (function, line)
    assert stall["cause"] in admitted(stall, ("sleep",)), stall["evidence"]
    assert stall["callback"]["name"] == name


def is_explained(stall: dict[str, Any]) -> bool:
    """By the host, by what the program prepares on its other thread, which computes with the GIL, or by its
    own collection between two kinds, which takes as long as there are young objects."""
    if stall["cause"] == "gc" and (stall["culprit"] or {}).get("source") == "gc.collect(0)":
        return True
    holder = stall["holder"]
    is_preparing = holder is not None and holder["thread"].startswith("ThreadPoolExecutor")
    return is_preparing or is_by_the_host(stall) or "host" in admitted(stall, (stall["cause"],))


def test_nothing_else_is_reported_but_what_the_host_did(run):
    known = {stall["id"] for kind in run.truth for stall in run.stalls_of(kind)}
    others = [stall for stall in run.stalls if stall["id"] not in known]
    assert [stall for stall in others if not is_explained(stall)] == []


def test_idle_inner_and_animated_loops_are_no_stalls(interpreter, tmp_path):
    seen = json.loads(interpreter.run(QUIET, tmp_path / "store").splitlines()[-1])
    report = Watched(store=tmp_path / "store", engine="native").report()
    assert unexplained(report["stalls"]) == []
    assert (seen["frames"], seen["kind"]) == (60, "glib")
    # Two waits of one and a half seconds each, and what the progress slept.
    assert seen["utilization"] < 0.5


COMING_AND_GOING = """
import json
import loopcanary
from gi.repository import GLib
import gi.overrides.GLib as overrides
before = GLib.timeout_add, GLib.idle_add, overrides.MainLoop.__dict__["run"]

def turn(ticks):
    loop = GLib.MainLoop()
    def tick():
        ticks.append(1)
        if len(ticks) == 5:
            loop.quit()
        return len(ticks) < 5
    GLib.timeout_add(1, tick)
    loop.run()

counts = []
for _ in range(2):
    canary = loopcanary.install(store=STORE, quiet=True, engine="native", threshold="1h")
    turn([])
    (loop,) = canary.loops()
    counts.append((loop.kind, loop.callbacks))
    loopcanary.uninstall()
    turn([])
after = GLib.timeout_add, GLib.idle_add, overrides.MainLoop.__dict__["run"]
print(json.dumps([counts, before == after]))
"""


def test_what_is_installed_and_taken_back_leaves_nothing(tell, tmp_path):
    counts, as_before = tell(f"STORE = {str(tmp_path / 'store')!r}\n{COMING_AND_GOING}")
    assert counts == [["glib", 5]] * 2
    assert as_before


SIGNALS = """
import gc, json, sys, weakref
import loopcanary
from gi.repository import GLib, GObject

class Thing(GObject.Object):
    __gsignals__ = {
        "poked": (GObject.SignalFlags.RUN_FIRST, None, ()),
        "asked": (GObject.SignalFlags.RUN_LAST, bool, ()),
    }

told = []
def on_poked(thing):
    told.append("poked")
def once(thing):
    told.append("once")
    thing.disconnect_by_func(once)
def answers(thing, answer):
    return answer
def deep(thing):
    told.append("deep")
    if told.count("deep") < 40:  # more than are kept an eye on
        thing.emit("poked")
def raises(thing):
    raise ValueError("of the handler")

def use(thing):
    thing.connect("poked", on_poked)
    thing.connect("poked", once)
    thing.emit("poked")
    thing.emit("poked")
    thing.disconnect_by_func(on_poked)
    thing.emit("poked")
    number = thing.connect_after("poked", deep)
    thing.emit("poked")
    thing.disconnect(number)
    thing.connect("asked", answers, True)
    return thing.emit("asked")

def turn(function):
    loop = GLib.MainLoop()
    def run():
        results.append(function())
        loop.quit()
    GLib.timeout_add(1, run)
    loop.run()

results, errors = [], []
sys.excepthook = lambda kind, error, where: errors.append(str(error))
before = Thing()
before.connect("poked", on_poked)
for _ in range(2):
    canary = loopcanary.install(store=STORE, quiet=True, engine="native", threshold="1h")
    thing = Thing()
    turn(lambda: use(thing))
    turn(lambda: before.emit("poked"))
    thing.connect("poked", raises)
    thing.emit("poked")
    results.append(canary.loops()[0].kind)
    loopcanary.uninstall()
    results.append(use(thing))
    turn(lambda: use(thing))
gone = weakref.ref(thing)
del thing
sys.last_exc = sys.last_value = sys.last_traceback = None  # of the handler that raised, with its frames
gc.collect()
print(json.dumps([results, told, errors, gone() is None]))
"""


def test_signal_handlers_behave_as_ever(tell, tmp_path):
    results, told, errors, is_gone = tell(f"STORE = {str(tmp_path / 'store')!r}\n{SIGNALS}")
    assert results == [True, None, "glib", True, True] * 2
    used = ["poked", "once", "poked"]
    deep = ["deep"] * 40
    assert told[: len(used + deep)] == used + deep
    assert (told.count("once"), told.count("deep")) == (6, 40 + 5)
    assert set(errors) == {"of the handler"}
    assert is_gone


RUNS_ALREADY = """
import json, os, sys, time
sys.path.insert(0, PROGRAMS)
import loopcanary
from blocking import block, slept
from gi.repository import GLib, GObject

class Thing(GObject.Object):
    __gsignals__ = {"poked": (GObject.SignalFlags.RUN_FIRST, None, ())}

def on_poked(thing):
    block("on_poked")

def readable(*ignored):
    os.read(reading, 1)
    thing.emit("poked")
    GLib.timeout_add(1, loop.quit)

def come():
    loopcanary.install(store=STORE, quiet=True, engine="native")
    thing.connect("poked", on_poked)
    GLib.timeout_add(1, poke)

def poke():
    GLib.io_add_watch(reading, GLib.PRIORITY_DEFAULT, GLib.IOCondition.IN, readable)
    os.write(writing, b"x")

thing, (reading, writing), loop = Thing(), os.pipe(), GLib.MainLoop()
GLib.timeout_add(1, come)
loop.run()
time.sleep(0.4)  # no loop's
loopcanary.uninstall()
print(json.dumps(slept))
"""


def test_handlers_of_a_loop_that_runs_already_are_watched(tell, tmp_path):
    places = f"STORE, PROGRAMS = {str(tmp_path / 'store')!r}, {str(PROGRAMS)!r}"
    slept = tell(f"{places}\n{RUNS_ALREADY}")
    report = Watched(store=tmp_path / "store", engine="native").report()
    assert by_sleep(report, slept)["on_poked"]["callback"]["name"] == "poked: on_poked"
    assert {stall["callback"]["name"] for stall in report["stalls"] if stall["cause"] == "sleep"} == {
        "poked: on_poked"
    }
