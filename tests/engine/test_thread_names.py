from __future__ import annotations

import subprocess
import threading
import time
from contextlib import suppress

import pytest

from loopcanary.engine import threads
from loopcanary.engine.threads import ThreadNames
from loopcanary.flight import FlightError, FlightFile

UNTIL_SAMPLED = """
        def until_sampled():
            # There are samples only in a stall: of the loop, which waits for the lock.
            before = samples()
            while samples() < before + 5:
                time.sleep(0.1)
"""


def run(name: str | None = None) -> threading.Thread:
    """A thread that has come and gone."""
    thread = threading.Thread(target=lambda: None, name=name)
    thread.start()
    thread.join()
    return thread


def test_an_ended_thread_keeps_its_name_while_held():
    ended = run("worker")
    assert (ended.native_id, "worker") in ThreadNames().look()


def test_a_thread_that_was_seen_while_it_lived_is_remembered():
    names, may_end = ThreadNames(), threading.Event()
    thread = threading.Thread(target=may_end.wait, name="worker")
    thread.start()
    number = thread.native_id
    names.look()
    may_end.set()
    thread.join()
    del thread
    assert dict(names.look())[number] == "worker"


def test_what_is_remembered_is_bounded_and_the_living_stay(monkeypatch):
    monkeypatch.setattr(threads, "_GONE_MAX", 3)
    names = ThreadNames()
    for number in range(10):
        run(f"worker {number}")
        names.look()
    found = dict(names.look())
    assert len(found) <= threading.active_count() + 3
    assert found[threading.get_native_id()] == threading.current_thread().name


def test_the_latest_owner_of_a_number_counts():
    first, second = run("first"), run("second")
    second._native_id = first.native_id
    names = ThreadNames()
    names._note(first)
    names._note(second)
    assert names._known == {first.native_id: "second"}


def test_a_name_that_is_none_does_no_harm():
    class Odd(threading.Thread):
        @property
        def name(self):
            raise LookupError

        @name.setter
        def name(self, value):
            pass

    odd = Odd(target=lambda: None)
    odd.start()
    odd.join()
    assert odd.native_id not in dict(ThreadNames().look())


def holders(place) -> set[str]:
    """Names of the guilty threads, without our own, which a busy machine may not run while it has the GIL."""
    stalls = place.stalls()
    return {stall.holder.thread for stall in stalls if stall.holder is not None} - {"loopcanary-drain"}


@pytest.mark.native
def test_a_thread_that_held_the_gil_and_has_ended_is_named(place):
    program = place.program("""
        import ctypes

        def hold():
            # With the GIL in hand, until there are samples of that.
            ctypes.PyDLL(None).read(0, ctypes.create_string_buffer(1), 1)

        async def main():
            await asyncio.sleep(0)
            # start() waits until it has begun, and by then it has the GIL
            threading.Thread(target=hold, name="the number cruncher").start()

        sys.setswitchinterval(0.0005)
        asyncio.run(main())
    """)
    process = place.start(program, stdin=subprocess.PIPE)
    while not waits_for_the_gil(place):
        time.sleep(0.02)
        assert process.poll() is None
    process.communicate(b"!")
    assert process.returncode == 0
    assert "the number cruncher" in holders(place)


def waits_for_the_gil(place) -> bool:
    """Whether the watchdog has seen it often enough, by the flight file of the one program."""
    for link in place.store.glob("flight/*.flight"):
        with suppress(FlightError), FlightFile.open(link.resolve()) as flight:  # it may be about to be made
            return any(
                sum(sample.waits_for_gil for sample in one.samples) > 5
                for _, one in flight.stalls()
                if one.end_ns is None
            )
    return False


@pytest.mark.native
def test_a_thread_that_held_a_lock_and_has_ended_is_named(place):
    program = place.program(
        UNTIL_SAMPLED
        + """
        lock, taken = threading.Lock(), threading.Event()

        class Keeper(threading.Thread):
            def run(self):
                with lock:
                    taken.set()
                    until_sampled()

        async def main():
            with lock:
                pass

        asyncio.run(asyncio.sleep(0))
        Keeper(name="Verwälter", args=[1]).start()
        taken.wait()
        asyncio.run(main())
    """
    )
    place.run(program)
    assert holders(place) == {"Verwälter"}


@pytest.mark.native
def test_a_thread_of_a_class_with_other_texts_is_named(place):
    program = place.program(
        UNTIL_SAMPLED
        + """
        lock, taken = threading.Lock(), threading.Event()

        class Keeper(threading.Thread):
            def __init__(self, path):
                self.path = path
                super().__init__(name="keeper", args=("not its name",))
                self.label = "label"

            def run(self):
                with lock:
                    taken.set()
                    until_sampled()

        async def main():
            with lock:
                pass

        asyncio.run(asyncio.sleep(0))
        Keeper("/path").start()
        taken.wait()
        asyncio.run(main())
    """
    )
    place.run(program)
    assert holders(place) == {"keeper"}


@pytest.mark.native
def test_a_killed_program_names_the_thread_that_held_its_lock(place):
    program = place.program(
        UNTIL_SAMPLED
        + """
        import os, signal

        lock, taken = threading.Lock(), threading.Event()

        def keep():
            with lock:
                taken.set()
                until_sampled()
                os.kill(os.getpid(), signal.SIGKILL)

        async def main():
            with lock:
                pass

        asyncio.run(asyncio.sleep(0))
        threading.Thread(target=keep, name="keeper").start()
        taken.wait()
        asyncio.run(main())
    """
    )
    place.run(program, status=-9)
    assert holders(place) == {"keeper"}
