"""Main loops of GLib's: patches, handlers of signals, loops that run already. (Blocks: ../test_blocks.py.)"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.loops.slept import by_sleep
from tests.program.watching import PROGRAMS, Watched

pytestmark = pytest.mark.native

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
    canary = loopcanary.install(store=STORE, console="off", engine="native", threshold="1h")
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


POLLS = """
import json, sys, time
import loopcanary
from gi.repository import GLib
canary = loopcanary.install(store=STORE, console="off", engine="native", threshold="1h")
slept = []
def busy_in(work):
    "Nanoseconds: what the loops say, and what the program did but sleep."
    began, before = time.monotonic_ns(), sum(loop.busy_ns for loop in canary.loops())
    work()
    busy_ns = sum(loop.busy_ns for loop in canary.loops()) - before
    return busy_ns, time.monotonic_ns() - began - slept.pop()
def program(context, pumps):
    source = GLib.timeout_source_new(50)
    source.set_callback(lambda *_: True)
    source.attach(context)
    for _ in range(pumps):
        context.iteration(True)
    began = time.monotonic_ns()
    time.sleep(0.3)
    slept.append(time.monotonic_ns() - began)
    source.destroy()
default, own = GLib.MainContext.default(), GLib.MainContext.new()
print(json.dumps([busy_in(lambda: program(*what)) for what in ((default, 2), (default, 5), (own, 5))]))
"""


def test_a_program_that_turns_a_context_by_itself(tell, tmp_path):
    """What it does in between is a turn, and the waits are none."""
    twice, default, own = tell(f"STORE = {str(tmp_path / 'store')!r}\n{POLLS}")
    assert min(default[0], own[0]) >= 300_000_000
    busy_ns, awake_ns = twice  # which a crowded machine makes long, and the sleep is no part of
    assert busy_ns <= awake_ns


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
    canary = loopcanary.install(store=STORE, console="off", engine="native", threshold="1h")
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
    loopcanary.install(store=STORE, console="off", engine="native")
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


STOPPED_IN_A_HANDLER_S_END = """
import ctypes, json, os, threading, time
import loopcanary
loopcanary.install(store=STORE, console="off", engine="native", threshold="10ms")
from gi.repository import GLib, GObject

class Thing(GObject.Object):
    __gsignals__ = {"poked": (GObject.SignalFlags.RUN_FIRST, None, ())}

WAITS_FOR_IT, HOLDS_IT = 1, 2
clock = ctypes.c_int.in_dll(ctypes.CDLL(None), "held_clock")

def on_poked(thing):
    time.sleep(0.05)
    clock.value = WAITS_FOR_IT

def readable(*ignored):
    thing.emit("poked")
    loop.quit()

def stop():
    while clock.value != HOLDS_IT:
        time.sleep(0.001)
    loopcanary.uninstall()
    stopped.append(True)
    clock.value = 0

thing, (reading, writing), loop, stopped = Thing(), os.pipe(), GLib.MainLoop(), []
thing.connect("poked", on_poked)
GLib.io_add_watch(reading, GLib.PRIORITY_DEFAULT, GLib.IOCondition.IN, readable)
threading.Thread(target=stop, daemon=True).start()
os.write(writing, b"x")
loop.run()
print(json.dumps(stopped))
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler here")
def test_the_engine_stops_while_a_handler_is_about_to_end(tell, tmp_path, monkeypatch):
    """It ends without the GIL, so that nothing keeps the two apart."""
    library = tmp_path / "held_clock.so"
    source = Path(__file__).with_name("held_clock.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", str(source), "-o", str(library)], check=True)
    monkeypatch.setenv("LD_PRELOAD", f"{os.environ.get('LD_PRELOAD', '')} {library}".strip())
    assert tell(f"STORE = {str(tmp_path / 'store')!r}\n{STOPPED_IN_A_HANDLER_S_END}") == [True]
