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
    options = dict(store=sys.argv[1], console="off", engine="native", threshold="1h") | more
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
updates = 0
while len(ticks) < 20 or updates < 20:
    root.update()
    updates += 1
    time.sleep(0.002)
root.destroy()
(loop,) = tk_loops(canary)
time.sleep(0.05)
(later,) = tk_loops(canary)
print(json.dumps([loop.turns, loop.callbacks, loop.busy_ns == later.busy_ns, len(ticks)]))
""")
    # The first one is called by hand; of the others several may be due in one update, and none in another.
    assert callbacks == ticks - 1 >= 19
    assert turns >= 10
    assert stopped


BUSY = """
import tkinter
from tkinter import commondialog
canary = install()
slept_ns = 0
def sleep(seconds):
    global slept_ns
    began = time.monotonic_ns()
    time.sleep(seconds)
    slept_ns += time.monotonic_ns() - began
def busy_in(work):
    "Nanoseconds: what the loop says, and what the program did but sleep."
    global slept_ns
    slept_ns, began = 0, time.monotonic_ns()
    before = sum(loop.busy_ns for loop in tk_loops(canary))
    work()
    busy_ns = sum(loop.busy_ns for loop in tk_loops(canary)) - before
    return busy_ns, time.monotonic_ns() - began - slept_ns
"""


def test_a_program_that_asks_for_one_event_at_a_time(tell):
    """As `window.read()` of FreeSimpleGUI: mainloop(), until a handler ends it."""
    within, returned, closed = tell(f"""{BUSY}
def read(root):
    root.after(1, root.quit)
    root.mainloop()
def program(root, closes):
    for number in range(6):
        read(root)
        if number == 4:
            if closes:
                tkinter.Toplevel(root).destroy()
            sleep(0.3)
root = tkinter.Tk()
within, _ = busy_in(lambda: program(root, False))
closed = busy_in(lambda: program(root, True))
returned, _ = busy_in(lambda: sleep(0.3))
root.destroy()
print(json.dumps([within, returned, closed]))
""")
    assert within >= 300_000_000
    assert abs(returned) < 1000  # ticks are rounded to nanoseconds
    busy_ns, awake_ns = closed  # which a crowded machine makes long, and the sleep is no part of
    assert busy_ns <= awake_ns


def test_dialogs_and_single_updates_before_long_work_are_no_loop(tell):
    busy_ns, awake_ns = tell(f"""{BUSY}
root = tkinter.Tk()
root.withdraw()
class Dialog(commondialog.Dialog):
    command = "set"
def program():
    for _ in range(5):
        Dialog(root, value="x").show()
        sleep(0.1)
    root.update()
    sleep(0.1)
    splash = tkinter.Toplevel(root)
    for _ in range(9):
        splash.update()
    splash.destroy()
    sleep(0.3)
    root.destroy()
print(json.dumps(busy_in(program)))
""")
    assert busy_ns <= awake_ns


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
    plain = tell(EXCEPTIONS)
    # What leaves a command has passed the probe's function, too.
    names = ["<module>", "__call__", "_report_exception"]
    assert [place[0] for place in plain.pop(0)] == names
    assert [place[0] for place in watched.pop(0)] == [*names[:2], *names[1:]]
    # What is due at once comes in any order.
    assert sorted(map(json.dumps, watched)) == sorted(map(json.dumps, plain))
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
    root.after(1, root.destroy)
root.after_idle(refresh)
root.mainloop()
figures = canary.tracing.traces.figures()
print(json.dumps([[(one.loop, one.events, one.worst_ns >= 25_000_000) for one in figures.input],
                  [(one.loop, one.name, one.runs) for one in figures.idle]]))
""")
    assert inputs == [["tk", 1, True]]
    assert idles == [["tk", "after_idle: refresh", 1]]


def test_a_click_on_a_button_is_input(tell):
    """Tk's own binding calls the command, and tells it nothing of the event. A command that the program calls
    is no input."""
    inputs = tell("""
import tkinter
canary = install()
root = tkinter.Tk()
def clicked():
    time.sleep(0.02)
button = tkinter.Button(root, name="send", command=clicked)
button.pack()
def click():
    now_ms = time.monotonic_ns() // 1_000_000 % (1 << 32)
    for event in ("<Enter>", "<ButtonPress-1>", "<ButtonRelease-1>"):
        button.event_generate(event, x=3, y=3, time=now_ms - 40)
root.update()
root.after(1, click)
root.after(60, button.invoke)
root.after(100, root.destroy)
root.mainloop()
figures = canary.tracing.traces.figures()
print(json.dumps([(one.loop, one.events, one.worst_ns >= 55_000_000) for one in figures.input]))
""")
    assert inputs == [["tk", 1, True]]


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
def only_tcl():
    tk = ctypes.CDLL(tkinter._tkinter.__file__)
    tk.Tcl_CreateEventSource(libc.getpid, libc.getpid, None)
    tk.Tk_CreateGenericHandler(libc.getpid, None)
def kept_by_threads(call=tkinter.CallWrapper(int, None, None)):
    before = libc.mallinfo2().uordblks
    for _ in range(THREADS):
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
    return libc.mallinfo2().uordblks - before
THREADS = 20
kept_by_threads()
THREADS = 100
with_frames = kept_by_threads()
loopcanary.uninstall()
print(json.dumps([with_frames, kept_by_threads(only_tcl)]))
""")
    # Tcl itself keeps what it has of a thread; frames take 12 kB.
    assert with_frames - without < 100 * 6000


def test_a_program_that_runs_tcl_without_tk_is_watched(tell):
    """Tk's functions need a table that Tk has from its first window on."""
    counts = tell("""
import tkinter
canary = install()
counts = []
tcl = tkinter.Tcl()
tcl.after(1, lambda: tcl.setvar("done", 1))
tcl.tk.call("vwait", "done")
counts.append(tk_loops(canary)[0].callbacks)
root = tkinter.Tk()
root.bind("<Configure>", lambda event: root.after(1, root.destroy))
root.mainloop()
counts.append(tk_loops(canary)[0].callbacks)
print(json.dumps(counts))
""")
    assert counts[0] == 1
    assert counts[1] > 2


def test_frames_are_asked_for_while_they_are_handed_over(tell):
    """The collector may run a finalizer there that draws (CPython 3.11; later ones collect elsewhere)."""
    told = tell("""
import gc, tkinter
from loopcanary import _native

class Drawn:
    def __init__(self):
        self.me = self

    def __del__(self):
        _native.tk_shown(True)

def hand_over():
    shown, collect_after = _native.tk_shown, gc.set_threshold
    shown(True)
    root.tk.eval("vwait enough")
    gc.collect()
    collect_after(1_000_000)
    for _ in range(10):
        Drawn()
    collect_after(1, 1, 1)
    given = shown(True)
    collect_after(700)
    frames.extend(given[2])
    root.destroy()

canary = install()
root = tkinter.Tk()
board = tkinter.Canvas(root, name="board")
board.pack()
board.create_rectangle(0, 0, 50, 50, fill="red")
root.wait_visibility(board)  # before, nothing is drawn
root.tk.eval('''
set left 60
proc move {by} {
    .board move all $by 0
    if {[incr ::left -1] == 0} {after idle {set enough 1}}
    # Behind what draws this one: on a crowded machine the time of the next one has come before.
    after idle [list after 5 move [expr -$by]]
}
after 1 move 1''')
frames = []
root.after(10, hand_over)
root.mainloop()
print(json.dumps([len(frames), sorted({len(one) for one in frames})]))
""")
    count, parts = told
    assert count > 20
    assert parts == [3]
