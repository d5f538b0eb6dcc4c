"""LoopHooks: what a loop tells by hooks of its own becomes turns, callbacks and stalls."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

import loopcanary

native = pytest.importorskip("loopcanary._native", reason="needs the C core")

CALLBACKS = 5


@pytest.fixture
def canary(tmp_path):
    started = loopcanary.install(threshold="1h", store=str(tmp_path / "store"), console=False)
    yield started
    loopcanary.uninstall()


def own_loop(canary, kind):
    return next(loop for loop in canary.loops() if loop.kind == kind)


def test_turns_and_callbacks_are_counted(canary):
    hooks = native.LoopHooks("novel")
    hooks.run_begin()
    for _ in range(CALLBACKS):
        hooks.wait_begin("what a loop passes", 1)
        hooks.wait_end()
        hooks.work_begin("work")
        hooks.work_end()
    hooks.run_end()
    loop = own_loop(canary, "novel")
    assert (loop.turns, loop.callbacks) == (CALLBACKS + 1, CALLBACKS)


def test_a_loop_inside_a_callback_is_no_part_of_it(canary):
    hooks = native.LoopHooks("novel")
    hooks.run_begin()
    hooks.work_begin("opens a dialog")
    hooks.run_begin()
    hooks.wait_begin()
    hooks.wait_end()
    hooks.work_begin("in the dialog")
    hooks.work_end()
    hooks.run_end()
    hooks.work_end()
    hooks.run_end()
    # The outer turn up to the dialog, the dialog's two, and the outer one's rest, with that of the callback.
    loop = own_loop(canary, "novel")
    assert (loop.turns, loop.callbacks) == (4, 3)


def test_whatever_was_not_begun_is_not_ended(canary):
    hooks = native.LoopHooks("novel")
    hooks.work_end()
    hooks.run_end()
    hooks.wait_end()
    hooks.run_begin()
    hooks.run_end()
    hooks.run_end()
    assert own_loop(canary, "novel").turns == 1


def test_nesting_has_no_end(canary):
    hooks = native.LoopHooks("novel")
    for _ in range(500):
        hooks.run_begin()
        hooks.work_begin("deeper")
    for _ in range(500):
        hooks.work_end()
        hooks.run_end()
    hooks.run_begin()
    hooks.work_begin("after it")
    before = own_loop(canary, "novel").callbacks
    hooks.work_end()
    hooks.run_end()
    assert own_loop(canary, "novel").callbacks == before + 1


def test_the_engine_may_go_in_the_middle(tmp_path):
    hooks = native.LoopHooks("novel")
    loopcanary.install(threshold="1h", store=str(tmp_path / "one"), console=False)
    hooks.run_begin()
    hooks.work_begin("outlives the engine")
    loopcanary.uninstall()
    hooks.work_end()
    hooks.wait_begin()
    canary = loopcanary.install(threshold="1h", store=str(tmp_path / "two"), console=False)
    hooks.wait_end()
    hooks.wait_begin()
    hooks.wait_end()
    hooks.work_begin("seen")
    hooks.work_end()
    hooks.run_end()
    assert own_loop(canary, "novel").callbacks == 1
    loopcanary.uninstall()


def test_threads_have_lanes_of_their_own(canary):
    hooks = native.LoopHooks("novel")
    ran, over = threading.Barrier(3), threading.Barrier(3)

    def loop(callbacks):
        hooks.run_begin()
        for _ in range(callbacks):
            hooks.work_begin("work")
            hooks.work_end()
        hooks.run_end()
        ran.wait()
        over.wait()

    threads = [threading.Thread(target=loop, args=(count,), daemon=True) for count in (2, 3)]
    for thread in threads:
        thread.start()
    ran.wait()
    assert sorted(loop.callbacks for loop in canary.loops() if loop.kind == "novel") == [2, 3]
    over.wait()
    for thread in threads:
        thread.join()


def test_it_reports_that_a_loop_runs_and_hides_errors(canary):
    told = []

    def loop_seen():
        told.append(1)
        raise ValueError("ours")

    hooks = native.LoopHooks("novel", loop_seen)
    hooks.run_begin()
    hooks.run_end()
    assert told == [1]
    assert hooks.kind == "novel"


PYTHON_AT_A_THREAD_S_END = """
import ctypes, sys, threading
import loopcanary
from loopcanary import _native

canary = loopcanary.install(store=sys.argv[1], console="off", engine="native", threshold="1h")
counts, over = [], threading.Event()

def work(kind):
    hooks = _native.LoopHooks(kind)
    hooks.run_begin()
    hooks.work_begin("work")
    hooks.work_end()
    hooks.run_end()
    counts.extend(loop.callbacks for loop in canary.loops() if loop.kind == kind)

@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def destructor(_):
    try:
        work("late")
    finally:
        over.set()

libc = ctypes.CDLL(None)
key = ctypes.c_uint()
assert libc.pthread_key_create(ctypes.byref(key), destructor) == 0

def run():
    work("early")
    libc.pthread_setspecific(key, ctypes.c_void_p(1))

threading.Thread(target=run).start()
over.wait()
assert counts == [1, 1], counts
"""


def test_python_that_runs_at_a_threads_very_end_is_seen(tmp_path):
    """In a destructor of thread-specific memory that comes after ours. Memory that was freed is not zero."""
    done = subprocess.run(
        [sys.executable, "-c", PYTHON_AT_A_THREAD_S_END, str(tmp_path / "store")],
        env=os.environ | {"MALLOC_PERTURB_": "85"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("arguments", [(), (1,), ("a", None, 2)])
def test_it_takes_a_name(arguments):
    with pytest.raises(TypeError):
        native.LoopHooks(*arguments)
