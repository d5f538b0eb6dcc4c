"""Which loops and turns are watched, and what is reported about them."""

from __future__ import annotations

import asyncio
import heapq
import selectors
import sys
import threading
import time
from unittest import mock

import pytest
from tests.program.programs.blocking import LONG_S, slow

import loopcanary

pytestmark = pytest.mark.native


def stalls_of(watch):
    return [(stall.culprit and stall.culprit.function, stall.scope.value) for stall in watch.stalls()]


def close_all(*loops):
    for loop in loops:
        loop.close()


def test_several_loops_of_one_thread_share_a_lane(watch):
    loops = [asyncio.new_event_loop() for _ in range(3)]
    with watch.installed() as canary:
        for loop in loops:
            loop.call_soon(slow)
            loop.call_soon(loop.stop)
            loop.run_forever()
        (health,) = canary.loops()
    close_all(*loops)
    assert health.kind == "asyncio"
    assert health.callbacks >= 6
    assert stalls_of(watch) == [("slow", "callback")] * 3


def test_each_thread_has_a_lane_with_its_name(watch):
    barrier = threading.Barrier(3)

    async def main():
        barrier.wait()
        slow()

    with watch.installed() as canary:
        threads = [threading.Thread(target=asyncio.run, args=(main(),), name=f"worker {n}") for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        names = sorted(health.thread for health in canary.loops())
    assert names == ["worker 0", "worker 1", "worker 2"]
    slow_ones = [stall for stall in watch.stalls() if stall.culprit and stall.culprit.function == "slow"]
    assert sorted(stall.thread for stall in slow_ones) == names


def test_lanes_of_threads_that_ended_are_used_again(watch):
    async def nothing():
        pass

    with watch.installed() as canary:
        for _ in range(300):
            thread = threading.Thread(target=asyncio.run, args=(nothing(),))
            thread.start()
            thread.join()
        assert canary.statistics().get("lanes_refused", 0) == 0


def test_many_short_callbacks_are_one_stall_of_the_turn(watch):
    async def main():
        loop = asyncio.get_running_loop()
        for _ in range(40):
            loop.call_soon(time.sleep, 0.015)
        await asyncio.sleep(0.01)

    with watch.installed(threshold="400ms"):
        asyncio.run(main())
    whole = [each for each in watch.all_stalls() if each.duration_ns >= 40 * 15_000_000]
    if not whole:  # others had the cores, so that one callback was a stall itself, and parted the turn
        assert "callback" in [each.scope.value for each in watch.all_stalls()]
        return
    (stall,) = whole
    assert stall.scope.value == "turn"
    assert stall.cause.value in {"burst", "host"}  # where others have the cores


def test_waiting_is_no_stall(watch):
    async def main():
        await asyncio.sleep(2 * LONG_S)
        await asyncio.to_thread(time.sleep, 2 * LONG_S)

    with watch.installed():
        asyncio.run(main())
    assert [(stall.cause.value, stall.evidence) for stall in watch.stalls()] == []


class NestableLoop(asyncio.SelectorEventLoop):
    """A loop whose turns may be run inside its own callbacks, as nest_asyncio makes them."""

    def _run_once(self):
        waits = None
        if self._ready or self._stopping:
            waits = 0
        elif self._scheduled:
            waits = max(0.0, self._scheduled[0]._when - self.time())
        self._process_events(self._selector.select(waits))
        until = self.time() + self._clock_resolution
        while self._scheduled and self._scheduled[0]._when < until:
            handle = heapq.heappop(self._scheduled)
            handle._scheduled = False
            self._ready.append(handle)
        for _ in range(len(self._ready)):
            if self._ready:  # a nested turn may have taken them
                self._ready.popleft()._run()

    def run_nested(self, seconds):
        over = []
        self.call_later(seconds, over.append, True)
        while not over:
            self._run_once()


@pytest.fixture
def nestable():
    loop = NestableLoop()
    yield loop
    loop.close()


def run_once_and_stop(loop, callback):
    loop.call_soon(callback)
    loop.call_soon(lambda: loop.call_soon(loop.stop))
    loop.run_forever()


def test_turns_inside_a_callback_are_no_stall_of_the_callback(watch, nestable):
    def outer():
        for _ in range(10):
            nestable.run_nested(LONG_S / 4)

    with watch.installed():
        run_once_and_stop(nestable, outer)
    assert watch.stalls() == []


def test_a_stall_inside_a_nested_turn_is_seen_once(watch, nestable):
    def outer():
        nestable.call_soon(slow)
        nestable.run_nested(LONG_S / 2)
        nestable.run_nested(LONG_S / 2)

    with watch.installed():
        run_once_and_stop(nestable, outer)
    assert stalls_of(watch) == [("slow", "callback")]


def test_what_a_callback_did_before_a_nested_turn_is_a_stall(watch, nestable):
    def outer():
        slow()
        nestable.run_nested(0.01)

    with watch.installed():
        run_once_and_stop(nestable, outer)
    assert stalls_of(watch) == [("slow", "callback")]


def test_work_after_a_nested_turn_counts_for_the_turn(watch, nestable):
    def outer():
        nestable.run_nested(0.01)
        slow()

    with watch.installed():
        run_once_and_stop(nestable, outer)
    assert stalls_of(watch) == [("slow", "turn")]


def test_a_loop_inside_a_callback_is_no_stall(watch):
    outer_loop, inner_loop = asyncio.new_event_loop(), asyncio.new_event_loop()

    def outer():
        running = asyncio._get_running_loop()
        asyncio._set_running_loop(None)
        try:
            inner_loop.run_until_complete(asyncio.sleep(2 * LONG_S))
        finally:
            asyncio._set_running_loop(running)

    with watch.installed():
        outer_loop.call_soon(outer)
        outer_loop.call_soon(outer_loop.stop)
        outer_loop.run_forever()
    close_all(outer_loop, inner_loop)
    assert watch.stalls() == []


class StepSelector(selectors.DefaultSelector):
    """A selector that has a `select` of its own, as loops under test have."""

    def select(self, timeout=None):
        return super().select(0 if timeout is None else timeout)


def test_a_selector_of_another_class_is_bracketed(watch):
    loop = asyncio.SelectorEventLoop(StepSelector())
    with watch.installed():
        loop.call_soon(slow)
        loop.call_later(2 * LONG_S, loop.stop)
        loop.run_forever()
    loop.close()
    assert stalls_of(watch) == [("slow", "callback")]


@pytest.mark.parametrize("kind", ["EpollSelector", "PollSelector", "SelectSelector"])
def test_a_turn_ends_and_begins_at_the_wait_of_every_selector(watch, kind):
    loop = asyncio.SelectorEventLoop(getattr(selectors, kind)())

    def many():
        for _ in range(10):
            loop.call_soon(time.sleep, LONG_S / 8)
        loop.call_soon(loop.call_later, 3 * LONG_S, loop.stop)  # after these; waiting is no stall

    with watch.installed() as canary:
        loop.call_soon(slow)
        loop.call_later(3 * LONG_S, many)
        loop.run_forever()
        (health,) = canary.loops()
    loop.close()
    # A crowded machine may add turns that were long for no fault of theirs, and be to blame for this one, or
    # for one of the callbacks in it.
    assert stalls_of(watch).count(("slow", "callback")) == 1
    assert [each for each in watch.all_stalls() if each.culprit is None or each.culprit.function != "slow"]
    assert health.turns >= 4
    assert health.busy_ns < health.window_ns - 2 * LONG_S * 1e9


def test_a_selector_that_was_replaced_by_a_mock_is_left_alone(watch):
    loop = asyncio.new_event_loop()
    real = loop._selector
    loop._selector = mock.Mock(wraps=real)
    with watch.installed():
        loop.call_soon(slow)
        loop.call_soon(loop.stop)
        loop.run_forever()
        assert isinstance(loop._selector.select, mock.Mock)
    loop._selector = real
    loop.close()
    assert stalls_of(watch) == [("slow", "callback")]


def test_a_select_patched_on_the_instance_is_kept(watch):
    loop = asyncio.new_event_loop()
    calls = []
    original = loop._selector.select

    def counting(timeout=None):
        calls.append(timeout)
        return original(timeout)

    loop._selector.select = counting
    with watch.installed():
        loop.call_soon(slow)
        loop.call_soon(loop.stop)
        loop.run_forever()
    assert calls
    assert loop._selector.select is counting
    loop.close()
    assert stalls_of(watch) == [("slow", "callback")]


def test_a_select_that_raises_raises_in_the_loop(watch):
    class Broken(selectors.DefaultSelector):
        def select(self, timeout=None):  # noqa: ARG002
            raise OSError("broken")

    loop = asyncio.SelectorEventLoop(Broken())
    with watch.installed():
        with pytest.raises(OSError, match="broken"):
            loop.run_forever()
        after = asyncio.new_event_loop()
        after.call_soon(slow)
        after.call_soon(after.stop)
        after.run_forever()
    close_all(loop, after)
    assert stalls_of(watch) == [("slow", "callback")]


def test_a_callback_knows_how_long_it_waited(watch):
    loop = asyncio.new_event_loop()
    with watch.installed() as canary:
        loop.call_soon(slow)
        loop.call_soon(slow)
        loop.call_soon(loop.stop)
        loop.run_forever()
        (health,) = canary.loops()
    loop.close()
    # The host may have made one of them, too.
    first, second = [one for one in watch.all_stalls() if one.callback and one.callback.endswith("slow")]
    assert first.queue_ns < second.queue_ns
    assert second.queue_ns >= LONG_S * 1e9
    assert health.queue_max_ns >= 2 * LONG_S * 1e9


def test_a_late_timer_counts_from_when_it_was_due(watch):
    loop = asyncio.new_event_loop()
    seen = {}

    def first():
        slow()
        seen["first ended"] = loop.time()

    def second():
        seen["second began"] = loop.time()
        slow()

    def arrange():
        loop.call_soon(first)
        seen["due"] = loop.call_later(LONG_S / 3, second).when()
        loop.call_later(LONG_S * 2, loop.stop)

    with watch.installed():
        loop.run_until_complete(asyncio.sleep(0))
        loop.call_soon(arrange)
        loop.run_forever()
    loop.close()
    (stall,) = [stall for stall in watch.stalls() if stall.callback.endswith("second")]
    waited_s = stall.queue_ns / 1e9
    assert seen["first ended"] - seen["due"] - 0.001 < waited_s < seen["second began"] - seen["due"] + 0.001


def test_the_length_of_a_task_s_stall_carries_its_name(watch):
    async def work():
        await asyncio.sleep(0)
        slow()

    async def main():
        await asyncio.create_task(work(), name="checkout")

    with watch.installed():
        asyncio.run(main())
    # A host that is busy may make stalls of callbacks that do nothing.
    (stall,) = [one for one in watch.stalls() if one.culprit is not None and one.culprit.function == "slow"]
    assert stall.task == "checkout"
    assert stall.callback.endswith("work")


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with 3.12")
def test_an_eager_task_stalls_within_the_callback_that_made_it(watch):
    async def work():
        slow()

    async def main():
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        await asyncio.create_task(work(), name="eager")

    with watch.installed():
        asyncio.run(main())
    assert stalls_of(watch) == [("slow", "callback")]


def test_in_debug_mode_stalls_are_the_same(watch):
    async def main():
        slow()

    with watch.installed():
        asyncio.run(main(), debug=True)
    assert stalls_of(watch) == [("slow", "callback")]


def test_statistics_tell_of_samples(watch):
    with watch.installed():
        loop = asyncio.new_event_loop()
        loop.call_soon(slow)
        loop.call_soon(loop.stop)
        loop.run_forever()
        loop.close()
        statistics = loopcanary.statistics()
    assert {"samples_taken", "stalls_recorded", "lanes_refused"} <= set(statistics)
