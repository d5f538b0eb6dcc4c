"""The watch over tests: what each phase of each test pays."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from tests.program.programs.blocking import slow

from loopcanary.engine.canary import Canary
from loopcanary.portable.lanes import LANES_MAX
from loopcanary.pytesting import watch as watches

THRESHOLD_NS = 100_000_000


@pytest.fixture(params=["native", "portable"])
def watch(tmp_path, request, monkeypatch):
    if request.param == "native":
        pytest.importorskip("loopcanary._native", reason="needs the C core")
    monkeypatch.setenv("LOOPCANARY_ENGINE", request.param)
    watch = watches.TestsWatch(THRESHOLD_NS, str(tmp_path / "store"))
    watch.start()
    yield watch
    watch.stop()


async def block() -> None:
    slow()  # on a crowded machine it reads for longer than it sleeps, and another function is the culprit


async def turn() -> None:
    await asyncio.sleep(0)


def assert_quiet(watch) -> None:
    began_ns = time.monotonic_ns()
    asyncio.run(turn())
    took_ns = time.monotonic_ns() - began_ns
    stalls = watch.new_stalls()
    if stalls and took_ns >= THRESHOLD_NS:
        pytest.skip("the machine stopped a loop that does nothing")
    assert stalls == []


def in_a_thread(main) -> None:
    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    thread.join()


def test_figures_of_loops_are_read_only_after_a_stall(watch, monkeypatch) -> None:
    reads = []
    statistics = Canary.statistics
    monkeypatch.setattr(Canary, "statistics", lambda self: reads.append(1) or statistics(self))
    for _ in range(20):
        assert_quiet(watch)
    assert reads == []
    asyncio.run(block())
    assert watch.new_stalls()
    after = len(reads)
    assert after
    for _ in range(20):
        assert_quiet(watch)
    assert len(reads) == after


def test_a_stall_is_seen_where_lanes_were_given_to_others(watch) -> None:
    """Of a lane that another thread has now, no figure says how many stalls there were."""
    asyncio.run(block())
    assert watch.new_stalls()
    for _ in range(LANES_MAX + 10):
        in_a_thread(turn)
    in_a_thread(block)
    assert watch.new_stalls()
