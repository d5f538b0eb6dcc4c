"""Installed and uninstalled at any moment, whatever made the loop; and what a program sees is what it saw."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import threading
import time
import warnings

import pytest
import uvloop
import uvloop.loop
from tests.patches.everything import Objects
from tests.program.programs.blocking import LONG_S, slow

import loopcanary
from loopcanary.model import StallScope


async def blocks():
    slow()


def run(coroutine):
    """uvloop.run, whose wrapper would be what ran."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(coroutine)


def block():
    """For LONG_S, whether anybody watches or not."""
    time.sleep(LONG_S)


def hooked_uvloop():
    return [symbol for path, symbol in Objects().calls() if "uvloop" in path]


def run_soon(loop, callback, *args):
    loop.call_soon(callback, *args)
    loop.call_soon(loop.stop)
    loop.run_forever()


@pytest.fixture
def loop():
    made = uvloop.new_event_loop()
    yield made
    made.close()


def names(watch):
    return [stall.callback for stall in watch.stalls()]


def test_hooks_come_and_go_and_are_listed(watch, loop):
    assert hooked_uvloop() == []
    for _ in range(2):
        with watch.installed():
            assert "epoll_pwait" in hooked_uvloop()
            run_soon(loop, slow)
        assert hooked_uvloop() == []
        run_soon(loop, slow)
    assert names(watch) == ["slow", "slow"]


def test_a_loop_of_the_type_underneath_is_watched(watch):
    loop = uvloop.loop.Loop()
    with watch.installed():
        run_soon(loop, slow)
    loop.close()
    assert names(watch) == ["slow"]


def test_a_loop_of_the_policy_is_watched(watch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        loop = uvloop.EventLoopPolicy().new_event_loop()
    with watch.installed():
        loop.run_until_complete(blocks())
    loop.close()
    assert names(watch) == ["blocks"]


def assert_each_once(watch, threads):
    """Each thread, with its loop, has stalled once. Several that block at once may end with the samples of
    others: on a busy machine one may have none."""
    blocked = [stall for stall in watch.all_stalls() if stall.duration_ns >= LONG_S * 1e9]
    assert {(stall.thread, stall.loop) for stall in blocked} == threads
    sampled = [(stall.thread, stall.loop) for stall in watch.stalls()]
    assert len(sampled) == len(threads & set(sampled)) > 0
    if all(stall.samples for stall in blocked):
        assert set(sampled) == threads


def test_loops_in_threads_have_lanes_of_their_own(watch):
    threads = [threading.Thread(target=run, args=(blocks(),), name=f"loop {number}") for number in range(3)]
    with watch.installed():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert_each_once(watch, {("loop 0", "uvloop"), ("loop 1", "uvloop"), ("loop 2", "uvloop")})
    assert {stall.callback for stall in watch.stalls()} == {"blocks"}


def test_asyncio_and_uvloop_beside_each_other(watch):
    thread = threading.Thread(target=asyncio.run, args=(blocks(),), name="asyncio's")
    with watch.installed():
        thread.start()
        run(blocks())
        thread.join()
    assert_each_once(watch, {("MainThread", "uvloop"), ("asyncio's", "asyncio")})


def test_a_running_loop_is_watched_and_its_end_no_stall(watch):
    async def installs():
        watch.install()
        await asyncio.sleep(0.01)
        asyncio.get_running_loop().call_soon(slow)
        await asyncio.sleep(0.01)

    run(installs())
    time.sleep(LONG_S)
    loopcanary.uninstall()
    assert names(watch) == ["slow"]


def test_watched_work_around_callbacks_lasts_longer_than_they_do(watch):
    async def installs():
        watch.install()  # this callback is no lane's, so that the work is one by itself
        with loopcanary.watch("around"):
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            slow()

    run(installs())
    loopcanary.uninstall()
    assert names(watch) == ["around"]


def test_uninstalled_and_installed_again_inside_callbacks(watch):
    async def comes_and_goes():
        for _ in range(3):
            loopcanary.uninstall()
            block()
            await asyncio.sleep(0)
            watch.install()
            block()
            await asyncio.sleep(0)
            await asyncio.create_task(blocks())

    watch.install()
    run(comes_and_goes())
    loopcanary.uninstall()
    assert names(watch).count("blocks") == 3


def test_uninstalled_while_another_thread_waits_in_a_hooked_wait(watch):
    loop, waits = uvloop.new_event_loop(), threading.Event()

    async def main():
        loop.call_soon(waits.set)
        await stopped.wait()

    stopped = asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(main(),))
    watch.install()
    thread.start()
    waits.wait()
    time.sleep(0.05)
    for _ in range(3):
        loopcanary.uninstall()
        watch.install()
    loop.call_soon_threadsafe(stopped.set)
    thread.join()
    loop.close()
    loopcanary.uninstall()
    assert watch.stalls() == []


def test_a_fork_inside_a_callback(watch):
    async def forks():
        child = os.fork()
        if child == 0:
            try:
                asyncio._set_running_loop(None)
                run(asyncio.sleep(0.01))
                os._exit(7)
            finally:
                os._exit(1)
        _, status = await asyncio.to_thread(os.waitpid, child, 0)
        assert os.waitstatus_to_exitcode(status) == 7
        slow()

    with watch.installed(), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
        run(forks())
    assert names(watch) == ["test_a_fork_inside_a_callback.<locals>.forks"]


# ---- as without --------------------------------------------------------------------------------


def told_of(loop, callback):
    """What the loop's exception handler hears."""
    heard = []
    loop.set_exception_handler(lambda _, context: heard.append(context))
    run_soon(loop, callback)
    (context,) = heard
    entries = []
    trace = context["exception"].__traceback__
    while trace is not None:
        entries.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    return sorted(context), context["message"].partition(" at 0x")[0], entries


def fails():
    raise ValueError("of the callback")


def test_exceptions_go_where_they_went(watch, loop):
    plain = told_of(loop, fails)
    with watch.installed():
        assert told_of(loop, fails) == plain


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_what_ends_the_loop_ends_it(watch, loop, kind):
    def ends():
        raise kind

    with watch.installed():
        with pytest.raises(kind):
            run_soon(loop, ends)
        loop.run_until_complete(blocks())
    assert names(watch) == ["blocks"]


def test_control_c_interrupts_a_blocked_callback(watch, loop):
    def interrupts():
        slow()
        os.kill(os.getpid(), signal.SIGINT)

    def blocked():
        threading.Thread(target=interrupts).start()
        time.sleep(60)

    with watch.installed(), pytest.raises(KeyboardInterrupt):
        run_soon(loop, blocked)
    assert watch.stalls()[0].scope is StallScope.CALLBACK


def test_a_context_that_is_entered_already_is_refused_as_before(watch, loop):
    def enters_its_own_again(context):
        context.run(lambda: None)

    def outcome():
        heard = []
        context = contextvars.copy_context()
        loop.set_exception_handler(lambda _, found: heard.append(str(found.get("exception"))[:30]))
        loop.call_soon(enters_its_own_again, context, context=context)
        run_soon(loop, lambda: None)
        return heard

    plain = outcome()
    with watch.installed():
        assert outcome() == plain
        run_soon(loop, slow)
    assert names(watch) == ["slow"]


def test_cancelled_handles_do_not_run(watch, loop):
    ran = []
    with watch.installed():
        loop.call_soon(ran.append, 1).cancel()
        loop.call_later(0.001, ran.append, 2).cancel()
        loop.call_later(0.01, loop.stop)
        loop.run_forever()
    assert ran == []


def test_a_handle_may_cancel_itself_and_drop_its_callback(watch, loop):
    handles = []

    def cancels():
        handles.pop().cancel()
        slow()

    with watch.installed():
        handles.append(loop.call_soon(cancels))
        del cancels
        run_soon(loop, lambda: None)
    (stall,) = watch.stalls()
    assert stall.culprit.function == "slow"


def test_subprocesses_and_executors_work(watch):
    async def program():
        process = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
        answer, _ = await process.communicate(b"purr")
        assert answer == b"purr"
        assert await asyncio.to_thread(sum, [1, 2]) == 3

    # A start of a process lasts until the child has got to run.
    with watch.installed(threshold="1m"):
        run(program())
    assert watch.stalls() == []
