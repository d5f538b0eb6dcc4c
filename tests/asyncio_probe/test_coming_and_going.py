"""Installed and uninstalled at any moment: before loops, while they run, beside other people's patches."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import weakref

import pytest
from tests.program.programs.blocking import slow

import loopcanary

pytestmark = pytest.mark.native

HANDLE = asyncio.Handle
LOOP = asyncio.BaseEventLoop


def pristine():
    return HANDLE.__dict__["_run"], LOOP.__dict__["run_forever"]


def patched():
    return [type(function).__name__ == "method_descriptor" for function in pristine()]


@pytest.fixture(autouse=True)
def _left_as_it_was():
    before = pristine()
    yield
    HANDLE._run, LOOP.run_forever = before


def run_slow(loop):
    loop.call_soon(slow)
    loop.call_soon(loop.stop)
    loop.run_forever()


def culprits(watch):
    return [stall.culprit.function if stall.culprit else None for stall in watch.stalls()]


@pytest.fixture
def loop():
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def test_a_closed_loop_leaves_no_cycle(watch):
    with watch.installed():
        loop = asyncio.new_event_loop()
        loop.run_until_complete(asyncio.sleep(0))
        selector = weakref.ref(loop._selector)
        gc.disable()
        try:
            loop.close()
            assert selector() is None
        finally:
            gc.enable()


def test_uninstall_leaves_no_patch_no_thread_and_no_attribute(watch, loop):
    before, threads = pristine(), threading.active_count()
    with watch.installed():
        run_slow(loop)
        assert patched() == [True, True]
        assert "select" in vars(loop._selector)
    assert pristine() == before
    assert threading.active_count() <= threads
    assert "select" not in vars(loop._selector)
    assert culprits(watch) == ["slow"]


def test_what_happens_after_uninstall_is_not_seen(watch, loop):
    with watch.installed():
        loop.run_until_complete(asyncio.sleep(0))
    run_slow(loop)
    assert culprits(watch) == []


def test_a_loop_that_was_made_before_is_watched(watch, loop):
    with watch.installed():
        run_slow(loop)
    assert culprits(watch) == ["slow"]


def test_installed_again_it_watches_again(watch, loop):
    for _ in range(3):
        with watch.installed():
            run_slow(loop)
    assert culprits(watch) == ["slow"] * 3


def test_install_twice_gives_the_same_canary(watch):
    with watch.installed() as canary:
        assert watch.install() is canary
    assert loopcanary.statistics() == {}


def test_install_in_a_callback_watches_from_the_next(watch, loop):
    loop.call_soon(watch.install)
    loop.call_soon(slow)
    loop.call_later(0.01, slow)
    loop.call_later(0.02, loop.stop)
    loop.run_forever()
    assert "select" in vars(loop._selector)
    loopcanary.uninstall()
    # By the callback: on a busy machine one of them may be the host's.
    assert [stall.callback for stall in watch.all_stalls() if stall.callback] == ["slow", "slow"]


def test_uninstalled_inside_a_callback_the_loop_runs_on(watch, loop):
    seen = []
    watch.install()
    loop.call_soon(slow)
    loop.call_soon(loopcanary.uninstall)
    loop.call_soon(seen.append, "next")
    loop.call_later(0.01, seen.append, "later")
    loop.call_later(0.02, loop.stop)
    loop.run_forever()
    assert seen == ["next", "later"]
    # On a crowded machine the uninstalling itself may be one, of no frame of the program's.
    assert [name for name in culprits(watch) if name] == ["slow"]


def test_reinstall_in_one_callback_goes_on_watching(watch, loop):
    def change():
        loopcanary.uninstall()
        watch.install()

    watch.install()
    loop.call_soon(change)
    loop.call_soon(slow)
    loop.call_soon(loop.stop)
    loop.run_forever()
    loopcanary.uninstall()
    assert culprits(watch) == ["slow"]


class LoopInAThread:
    """A loop that runs in another thread until the end of the block."""

    def __init__(self, loop):
        self.loop = loop
        self.thread = threading.Thread(target=loop.run_forever, name="loop thread")

    def __enter__(self):
        running = threading.Event()
        self.loop.call_soon(running.set)
        self.thread.start()
        running.wait()
        return self

    def __exit__(self, *error):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()

    def call(self, function):
        """Runs it in the loop, in a turn of its own, and waits for its end and the turn's."""
        done = threading.Event()
        self.loop.call_soon_threadsafe(function)
        self.loop.call_soon_threadsafe(lambda: self.loop.call_soon(done.set))
        done.wait()


def test_install_in_another_thread_joins_a_running_loop(watch, loop):
    with LoopInAThread(loop) as other, watch.installed():
        other.call(slow)
        other.call(slow)
        assert "select" in vars(loop._selector)
    stalls = watch.stalls()
    assert [(stall.thread, stall.culprit.function) for stall in stalls] == [("loop thread", "slow")] * 2


def test_uninstalled_from_another_thread_while_the_loop_waits(watch, loop):
    with LoopInAThread(loop) as other:
        for _ in range(5):
            with watch.installed():
                other.call(lambda: None)
            other.call(lambda: None)
    assert "select" not in vars(loop._selector)


def test_uninstall_from_another_thread_during_a_callback(watch, loop):
    entered, leave = threading.Event(), threading.Event()

    def callback():
        entered.set()
        leave.wait()

    with LoopInAThread(loop) as other:
        watch.install()
        loop.call_soon_threadsafe(callback)
        entered.wait()
        loopcanary.uninstall()
        leave.set()
        other.call(lambda: None)
        with watch.installed():
            other.call(slow)
    assert "slow" in culprits(watch)


def test_a_loop_that_was_closed_in_the_meantime_is_no_trouble(watch):
    with watch.installed():
        loop = asyncio.new_event_loop()
        run_slow(loop)
        loop.close()
    assert culprits(watch) == ["slow"]


def test_install_and_uninstall_while_other_threads_loop(watch):
    over = threading.Event()

    async def turn():
        while not over.is_set():  # noqa: ASYNC110 - timers are what it is about
            await asyncio.sleep(0.0005)

    threads = [threading.Thread(target=lambda: asyncio.run(turn())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(60):
        with watch.installed():
            time.sleep(0.002 * (number % 3))  # at any point of the turns; nothing waits for it
    over.set()
    for thread in threads:
        thread.join()
    assert patched() == [False, False]


# ---- other people's patches ----------------------------------------------------------------------


def lay_patch(owner, name, seen):
    """Another tool's wrapper around the function that it finds."""
    original = owner.__dict__[name]

    def wrapper(self):
        seen.append(name)
        return original(self)

    setattr(owner, name, wrapper)
    return wrapper


TARGETS = pytest.mark.parametrize(("owner", "name"), [(HANDLE, "_run"), (LOOP, "run_forever")])


@TARGETS
def test_a_patch_that_was_there_before_is_called_and_comes_back(watch, loop, owner, name):
    seen = []
    wrapper = lay_patch(owner, name, seen)
    with watch.installed():
        run_slow(loop)
    assert owner.__dict__[name] is wrapper
    assert seen.count(name) == (2 if name == "_run" else 1)
    assert culprits(watch) == ["slow"]


@TARGETS
def test_a_patch_that_was_laid_over_ours_stays_at_uninstall(watch, loop, owner, name):
    seen = []
    watch.install()
    wrapper = lay_patch(owner, name, seen)
    run_slow(loop)
    loopcanary.uninstall()
    assert owner.__dict__[name] is wrapper
    assert culprits(watch) == ["slow"]
    seen.clear()
    run_slow(loop)
    assert seen.count(name) == (2 if name == "_run" else 1)
    assert culprits(watch) == ["slow"]


@TARGETS
def test_with_such_a_patch_it_can_be_installed_again(watch, loop, owner, name):
    seen = []
    watch.install()
    lay_patch(owner, name, seen)
    loopcanary.uninstall()
    for _ in range(3):
        with watch.installed():
            run_slow(loop)
    assert seen.count(name) == 3 * (2 if name == "_run" else 1)
    assert culprits(watch) == ["slow"] * 3


@TARGETS
def test_two_such_patches_of_two_installs_do_not_recurse(watch, loop, owner, name):
    seen = []
    for _ in range(2):
        watch.install()
        lay_patch(owner, name, seen)
        loopcanary.uninstall()
    with watch.installed():
        run_slow(loop)
    assert seen.count(name) == 2 * (2 if name == "_run" else 1)
    assert culprits(watch) == ["slow"]


def test_another_tools_patch_sees_a_failing_callback(watch, loop):
    seen, contexts = [], []
    lay_patch(HANDLE, "_run", seen)
    loop.set_exception_handler(lambda _loop, context: contexts.append(context["exception"]))
    with watch.installed():
        loop.call_soon(int, "no number")
        loop.call_soon(loop.stop)
        loop.run_forever()
    assert [type(error) for error in contexts] == [ValueError]
