"""The frames of all threads are had without harm."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref

import pytest

from loopcanary.thread_frames import thread_frames

MANY = """
import gc, threading, time
from loopcanary.thread_frames import thread_frames

class Circle:
    def __init__(self):
        self.itself, self.local = self, threading.local()
        self.local.kept = 1

def short():
    kept = threading.local()
    kept.circle = Circle()

def work():
    while time.monotonic() < until:
        threads = [threading.Thread(target=short) for _ in range(3)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()

gc.set_threshold(5, 2, 2)
until = time.monotonic() + 2
workers = [threading.Thread(target=work) for _ in range(4)]
for worker in workers: worker.start()
while time.monotonic() < until:
    thread_frames()
    Circle()
print("done", gc.isenabled())
"""


def test_the_callers_own_is_among_them():
    assert threading.get_ident() in thread_frames()


def test_threads_that_end_and_collections_do_not_stop_it():
    """`sys._current_frames` alone waits for ever within seconds on CPython 3.11.7 (gh-106883)."""
    done = subprocess.run(
        [sys.executable, "-c", MANY], capture_output=True, text=True, check=False, timeout=240
    )
    assert (done.returncode, done.stdout) == (0, "done True\n"), done.stderr


def test_a_thread_that_has_ended_is_kept_by_nothing():
    goes_on, witnesses = threading.Event(), []

    class Witness:
        pass

    def work():
        witness = Witness()
        witnesses.append(weakref.ref(witness))
        goes_on.wait()

    thread = threading.Thread(target=work)
    thread.start()
    while not witnesses:
        pass
    before = gc.get_threshold()
    gc.set_threshold(0)  # on, but it never begins by itself
    try:
        assert thread.ident in thread_frames()
        goes_on.set()
        thread.join()
        assert witnesses[0]() is None
    finally:
        gc.set_threshold(*before)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="collects between instructions only")
@pytest.mark.parametrize("was_on", [True, False])
def test_nothing_is_collected_meanwhile(monkeypatch, was_on):
    seen = []

    def frames():
        seen.append(gc.isenabled())
        raise TypeError

    monkeypatch.setattr(sys, "_current_frames", frames)
    if not was_on:
        gc.disable()
    try:
        assert thread_frames() == {}
        assert (seen, gc.isenabled()) == ([False], was_on)
    finally:
        gc.enable()
