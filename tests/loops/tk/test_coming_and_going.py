"""The probe's patches: laid before and after tkinter is imported, while its loop runs, and taken back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.native

# CPython warns from 3.12 on of a fork in a process of several threads: Tcl has one of its own.
FORKS_BESIDE_THREADS = ("-W", "ignore:This process:DeprecationWarning")

HEAD = """
import json, os, sys, time
import loopcanary

def install(**more):
    options = dict(store=sys.argv[1], quiet=True, engine="native", threshold="1h") | more
    return loopcanary.install(**options)

def tk_loops(canary):
    return [loop for loop in canary.loops() if loop.kind == "tk"]
"""


@pytest.fixture
def tell(tmp_path: Path, package_path: Path) -> Callable[[str], Any]:
    """tell(source): runs a program; what it prints last, as JSON."""

    def run(source: str) -> Any:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
        done = subprocess.run(
            [
                sys.executable,
                "-W",
                "error",
                *FORKS_BESIDE_THREADS,
                "-c",
                HEAD + source,
                str(tmp_path / "store"),
            ],
            env=clean | {"PYTHONPATH": str(package_path)},
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run


def test_an_import_after_the_install_and_one_before(tell):
    counts = tell("""
def turn(canary):
    root = tkinter.Tk()
    for delay in (1, 20, 40):
        root.after(delay, print)
    root.after(60, root.destroy)
    root.mainloop()
    (loop,) = tk_loops(canary)
    return loop.callbacks

canary = install()
import tkinter
counts = [turn(canary)]
loopcanary.uninstall()
counts.append(turn(install()))
print(json.dumps(counts))
""")
    assert counts == [4, 4]


def test_what_is_taken_back_leaves_nothing(tell):
    before, after = tell("""
import tkinter
from tkinter import commondialog

def attributes():
    owners = (tkinter, tkinter.Misc, tkinter.Tk, tkinter.CallWrapper, commondialog.Dialog)
    return [sorted((name, id(value)) for name, value in vars(owner).items()) for owner in owners]

before = attributes()
install()
assert attributes() != before
loopcanary.uninstall()
print(json.dumps([before, attributes()]))
""")
    assert before == after


def test_an_install_inside_a_running_mainloop(tell):
    turns, callbacks, left_open = tell("""
import tkinter
root = tkinter.Tk()
canaries = []
def begin():
    canaries.append(install())
    root.after(1, tick, 5)
def tick(left):
    root.after(1, tick, left - 1) if left else root.destroy()
root.after(1, begin)
root.mainloop()
(loop,) = tk_loops(canaries[0])
time.sleep(0.05)
(later,) = tk_loops(canaries[0])
print(json.dumps([loop.turns, loop.callbacks, later.busy_ns != loop.busy_ns]))
""")
    assert callbacks == 6
    assert turns >= 6
    assert not left_open


def test_another_engine_inside_a_mainloop_that_was_patched(tell):
    counts = tell("""
import tkinter
root = tkinter.Tk()
canary = install()
counts = []
def again():
    loopcanary.uninstall()
    counts.append(install())
    root.after(1, print)
    root.after(20, root.destroy)
root.after(1, again)
root.mainloop()
(loop,) = tk_loops(counts[0])
print(json.dumps([loop.callbacks, loop.turns >= 2]))
""")
    assert counts == [2, True]


def test_a_loop_turned_by_hand(tell):
    turns, callbacks, stopped, ticks = tell("""
import tkinter
canary = install()
root = tkinter.Tk()
ticks = []
def tick():
    ticks.append(1)
    root.after(1, tick)
tick()
while len(ticks) < 20:
    root.update()
    time.sleep(0.002)
root.destroy()
(loop,) = tk_loops(canary)
time.sleep(0.05)
(later,) = tk_loops(canary)
print(json.dumps([loop.turns, loop.callbacks, loop.busy_ns == later.busy_ns, len(ticks)]))
""")
    # The first one is called by hand; of the others two may be due in one update.
    assert callbacks == ticks - 1 >= 19
    assert turns >= 10
    assert stopped


def test_one_update_is_no_loop(tell):
    same = tell("""
import tkinter
canary = install()
root = tkinter.Tk()
root.after(0, print)
root.update()
(loop,) = tk_loops(canary)
time.sleep(0.05)
(later,) = tk_loops(canary)
print(json.dumps(loop.busy_ns == later.busy_ns))
""")
    assert same


EXCEPTIONS = """
import tkinter, traceback
root = tkinter.Tk()
seen = []
def report(kind, error, trace):
    assert sys.exc_info() == (kind, error, trace)
    frames = traceback.extract_tb(trace)
    seen.append([kind.__name__, [(one.name, one.line, one.colno, one.end_colno) for one in frames]])
root.report_callback_exception = report
class Strange:
    def __bool__(self):
        return True
    def __call__(self, *args):
        raise LookupError("subst")
def fails(*args):
    raise ValueError(args)
button = tkinter.Button(root, command=fails)
seen.append(str(button.invoke()))
root.tk.createcommand("strange", tkinter.CallWrapper(fails, Strange(), root).__call__)
root.tk.call("strange", "x")
root.after(1, fails, 1)
root.after_idle(fails, 2)
root.after(30, root.after_idle, sys.exit, 3)  # last, also where all is due at once
class Callable:
    def __call__(self):
        root.after(1, no_such_name)
root.after(2, Callable())
try:
    root.mainloop()
except SystemExit as end:
    seen.append(end.code)
results = []
root.tk.createcommand("result", tkinter.CallWrapper(lambda a, b: a + b, None, root).__call__)
seen.append(root.tk.call("result", "1", "2"))
def steps():
    tkinter.CallWrapper(fails, None, root)()
    yield
    seen.append(repr(sys.exception()))
stepping = steps()
try:
    raise KeyError("outside")
except KeyError:
    next(stepping)
next(stepping, None)
class Broken:
    def _report_exception(self):
        raise OSError("cannot report")
try:
    tkinter.CallWrapper(fails, None, Broken())()
except OSError as error:
    frames = traceback.extract_tb(error.__traceback__)
    seen.insert(0, [(one.name, one.line, one.colno, one.end_colno) for one in frames])
print(json.dumps(seen))
"""


def test_exceptions_and_results_are_as_tkinter_s_own(tell):
    watched = tell("install()\n" + EXCEPTIONS)
    # What is due at once comes in any order.
    assert sorted(map(json.dumps, watched)) == sorted(map(json.dumps, tell(EXCEPTIONS)))
    assert [place[0] for place in watched.pop(0)] == ["<module>", "__call__", "_report_exception"]
    kinds = sorted(entry[0] for entry in watched if isinstance(entry, list))
    assert kinds == ["LookupError", "NameError"] + ["ValueError"] * 4
    assert watched[-1] == "None"


def test_a_patch_of_the_program_s_own_is_called(tell):
    counts = tell("""
import tkinter
original = tkinter.CallWrapper.__call__
calls = []
def patched(self, *args):
    calls.append("patched")
    return original(self, *args)
tkinter.CallWrapper.__call__ = patched
canary = install()
class Wrapper(tkinter.CallWrapper):
    def __call__(self, *args):
        calls.append("subclass")
        return super().__call__(*args)
root = tkinter.Tk()
root.after(1, calls.append, "ran")
root.update()
time.sleep(0.01)
root.update()
tkinter.CallWrapper = Wrapper
root.after(1, root.destroy)
root.mainloop()
(loop,) = tk_loops(canary)
print(json.dumps([calls, loop.callbacks]))
""")
    assert counts == [["patched", "ran", "subclass", "patched"], 2]


def test_a_forked_child_has_a_loop_of_its_own(tell):
    assert (
        tell("""
import tkinter
canary = install()
root = tkinter.Tk()
root.after(1, root.destroy)
root.mainloop()
child = os.fork()
if child == 0:
    root = tkinter.Tk()
    root.after(1, root.destroy)
    root.mainloop()
    (loop,) = tk_loops(canary)
    os._exit(40 + loop.callbacks)
print(json.dumps(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
""")
        == 41
    )


def test_other_threads_that_ask_tk_to_do_something_have_no_loop(tell):
    loops = tell("""
import threading, tkinter
canary = install()
root = tkinter.Tk()
def ask():
    root.update_idletasks()
    root.update()
    root.after(1, root.destroy)
thread = threading.Thread(target=ask)
root.after(1, thread.start)
root.mainloop()
thread.join()
print(json.dumps([loop.thread for loop in tk_loops(canary)]))
""")
    assert loops == ["MainThread"]


def test_the_users_input_and_idle_work_are_traced(tell):
    inputs, idles = tell("""
import tkinter
canary = install()
root = tkinter.Tk()
root.bind("<Button-1>", lambda event: None)
root.update()
now_ms = time.monotonic_ns() // 1_000_000 % (1 << 32)
root.event_generate("<Button-1>", x=1, y=1, time=now_ms - 30)
def refresh():
    pass
root.after_idle(refresh)
root.after(50, root.destroy)
root.mainloop()
figures = canary.tracing.traces.figures()
print(json.dumps([[(one.loop, one.events, one.worst_ns >= 25_000_000) for one in figures.input],
                  [(one.loop, one.name, one.runs) for one in figures.idle]]))
""")
    assert inputs == [["tk", 1, True]]
    assert idles == [["tk", "after_idle: refresh", 1]]


def test_what_is_kept_of_a_thread_ends_with_it(tell):
    with_frames, without = tell("""
import ctypes, threading, tkinter
class Allocated(ctypes.Structure):
    names = "arena a b c hblkhd d e uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in names.split()]
libc = ctypes.CDLL(None)
if not hasattr(libc, "mallinfo2"):  # glibc before 2.33, musl
    print(json.dumps([0, 0]))
    raise SystemExit
libc.mallinfo2.restype = Allocated
install()
tkinter.Tk()
def kept_by_threads():
    before = libc.mallinfo2().uordblks
    for _ in range(THREADS):
        thread = threading.Thread(target=tkinter.CallWrapper(int, None, None))
        thread.start()
        thread.join()
    return libc.mallinfo2().uordblks - before
THREADS = 20
kept_by_threads()
THREADS = 100
with_frames = kept_by_threads()
sys.modules["loopcanary._native"].tk_listen(None, None)
print(json.dumps([with_frames, kept_by_threads()]))
""")
    # Tcl itself keeps what it has of a thread; frames take 12 kB.
    assert with_frames - without < 100 * 6000
