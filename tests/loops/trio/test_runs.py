"""Runs of trio, however they are begun, and whenever loopcanary comes and goes."""

from __future__ import annotations

import asyncio
import select
import threading
import time

import pytest
import trio
from tests.patches.everything import Objects
from tests.program.programs.blocking import LONG_S, slow

import loopcanary
from loopcanary import _native
from loopcanary.model import StallScope


async def blocks():
    slow()


async def run_named(name="the task"):
    async with trio.open_nursery() as nursery:
        nursery.start_soon(blocks, name=name)


def told(watch):
    return [(stall.callback, stall.task, stall.loop) for stall in watch.stalls()]


def test_a_step_has_the_names_of_coroutine_and_task(watch):
    with watch.installed():
        trio.run(run_named)
    assert told(watch) == [("blocks", "the task", "trio")]
    assert watch.stalls()[0].culprit.qualname == "slow"


def test_each_loop_on_a_thread_has_its_own_kind(watch):
    async def outer():
        slow()
        trio.run(run_named)  # within asyncio's: a stall of that loop

    with watch.installed():
        asyncio.run(blocks())
        trio.run(run_named)
        asyncio.run(blocks())
    assert [stall.loop for stall in watch.stalls()] == ["asyncio", "trio", "asyncio"]
    with watch.installed():
        asyncio.run(outer())
    assert {stall.loop for stall in watch.stalls()[3:]} == {"asyncio"}


def test_watched_only_while_installed(watch):
    plain = trio._core._run.Instruments
    for _ in range(2):
        with watch.installed():
            assert trio._core._run.Instruments is not plain
            trio.run(run_named)
        assert trio._core._run.Instruments is plain
        assert not select_is_hooked()
        trio.run(run_named)
    assert len(told(watch)) == 2


def test_installed_in_the_middle_of_a_run(watch):
    async def main():
        await run_named("before")
        watch.install()
        await run_named("while")
        loopcanary.uninstall()
        await run_named("between")
        watch.install()
        await run_named("again")
        loopcanary.uninstall()

    trio.run(main)
    assert [task for _, task, _ in told(watch)] == ["while", "again"]


def select_is_hooked():
    """Whether trio's waits are; other loops may have waits of their own in this process."""
    where = getattr(select, "__file__", "")  # Debian builds it into the interpreter, which has no path here
    return any(path == where for path, _ in Objects().calls())


def test_installed_while_another_thread_runs_trio(watch):
    runs, installed = threading.Event(), threading.Event()

    async def main():
        runs.set()
        while not installed.is_set():  # noqa: ASYNC110 - it turns, as runs do
            await trio.sleep(0.001)
        await run_named("of a thread")

    thread = threading.Thread(target=trio.run, args=[main], name="runner")
    thread.start()
    runs.wait()
    with watch.installed():
        installed.set()
        thread.join()
    assert [(stall.task, stall.thread) for stall in watch.stalls()] == [("of a thread", "runner")]


def test_runs_of_several_threads(watch):
    with watch.installed():
        threads = [threading.Thread(target=trio.run, args=[run_named, f"task {i}"]) for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    # Several that block at once may end with the samples of others: on a busy machine one may have none.
    blocked = [stall for stall in watch.all_stalls() if stall.duration_ns >= LONG_S * 1e9]
    assert {stall.thread for stall in blocked} == {thread.name for thread in threads}
    tasks = sorted(task for _, task, _ in told(watch))
    assert len(tasks) == len({*tasks} & {"task 0", "task 1", "task 2"}) > 0
    if all(stall.samples for stall in blocked):
        assert tasks == ["task 0", "task 1", "task 2"]


def test_anyio_on_trio(watch):
    anyio = pytest.importorskip("anyio", reason="anyio is not installed")

    async def main():
        async with anyio.create_task_group() as group:
            group.start_soon(blocks, name="of anyio's")

    with watch.installed():
        anyio.run(main, backend="trio")
    # The coroutine may be one of anyio's, around the program's.
    assert [(task, loop) for _, task, loop in told(watch)] == [("of anyio's", "trio")]


def test_a_run_inside_a_callback_of_asyncio(watch):
    async def host():
        trio.run(run_named)

    with watch.installed():
        asyncio.run(host())
    assert [(callback, task) for callback, task, _ in told(watch)] == [("blocks", "the task")]


async def guest(outcomes):
    loop, done = asyncio.get_running_loop(), asyncio.Event()
    trio.lowlevel.start_guest_run(
        run_named,
        "a guest's",
        run_sync_soon_threadsafe=loop.call_soon_threadsafe,
        run_sync_soon_not_threadsafe=loop.call_soon,
        done_callback=lambda outcome: (outcomes.append(outcome), done.set()),
        host_uses_signal_set_wakeup_fd=True,
    )
    await done.wait()


def test_a_guest_runs_steps_are_in_the_hosts_turn(watch):
    outcomes = []
    with watch.installed() as canary:
        asyncio.run(guest(outcomes))
        loops = canary.loops()
    assert [outcome.unwrap() for outcome in outcomes] == [None]
    assert told(watch) == [("blocks", "a guest's", "asyncio")]
    assert [loop.kind for loop in loops] == ["asyncio"]


def test_many_short_steps_in_one_turn_are_a_burst(watch):
    longest_s = 0.0

    async def part():
        nonlocal longest_s
        began = time.monotonic()
        time.sleep(0.001)  # noqa: ASYNC251 - all of them together are too long
        longest_s = max(longest_s, time.monotonic() - began)

    async def waits_for_the_watchdog(goal):
        """Short as well, and as many as it takes it to look twice: of what came before nothing is known."""
        if loopcanary.statistics()["samples_taken"] < goal:
            time.sleep(0.05)  # noqa: ASYNC251

    async def main():
        async with trio.open_nursery() as nursery:
            goal = loopcanary.statistics()["samples_taken"] + 2
            work = [(part,)] * 500 + [(waits_for_the_watchdog, goal)] * 60 + [(part,)] * 500
            for each in work:  # in this order or in the other one: that is drawn by lot
                nursery.start_soon(*each)

    with watch.installed(threshold="500ms", sample_delay="20ms"):
        trio.run(main)
    if longest_s >= 0.5:
        pytest.skip("the host stopped one of them, so that it is the stall")
    bursts = [stall for stall in watch.all_stalls() if stall.scope is StallScope.TURN and stall.contributors]
    assert bursts
    assert any(one.name.endswith("part") for one in bursts[0].contributors)


def test_waits_are_no_part_of_a_turn(watch, hooked):
    async def main():
        for _ in range(5):
            await trio.sleep(0.02)

    with watch.installed() as canary:
        if hasattr(select, "__file__"):  # else other loops' hooks are in the interpreter, too
            assert select_is_hooked() is hooked
        trio.run(main)
        (loop,) = canary.loops()
    assert loop.turns >= 5
    assert loop.callbacks >= 5
    assert loop.busy_ns < loop.window_ns


@pytest.fixture(params=[True, False], ids=["hooked", "told by trio"])
def hooked(request, monkeypatch):
    """Whether the entry of trio's wait can be written."""
    if not request.param:
        monkeypatch.setattr(_native, "hook_waits", lambda _: ())
        monkeypatch.setattr(_native, "hook_epoll_wait", lambda _: False)  # asyncio's, which is the same
    return request.param


def test_the_scene_of_a_task_goes_with_it(watch):
    async def main():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(shop)
            nursery.start_soon(elsewhere)

    async def shop():
        with loopcanary.scene("checkout"):
            await trio.sleep(0.02)
            slow()
        left.set()

    async def elsewhere():
        await left.wait()
        slow()

    left = trio.Event()

    with watch.installed():
        trio.run(main)
    assert [stall.scene for stall in watch.stalls()] == ["checkout", None]
