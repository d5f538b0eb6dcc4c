"""The watch over tests: what each phase of each test pays."""

from __future__ import annotations

import asyncio

import pytest
from tests.program.programs.blocking import slow

from loopcanary.engine.canary import Canary
from loopcanary.pytesting import watch as watches

MS = 1_000_000


@pytest.fixture
def watch(tmp_path):
    watch = watches.TestsWatch(100 * MS, str(tmp_path / "store"))
    watch.start()
    yield watch
    watch.stop()


async def block() -> None:
    slow()


async def turn() -> None:
    await asyncio.sleep(0)


def test_figures_of_loops_are_read_only_after_a_stall(watch, monkeypatch) -> None:
    reads = []
    loops = Canary.loops
    monkeypatch.setattr(Canary, "loops", lambda self: reads.append(1) or loops(self))
    for _ in range(20):
        asyncio.run(turn())
        assert watch.new_stalls() == []
    assert reads == []
    asyncio.run(block())
    assert [stall.culprit.function for stall in watch.new_stalls()] == ["slow"]
    first = len(reads)
    assert first
    for _ in range(20):
        asyncio.run(turn())
        assert watch.new_stalls() == []
    assert len(reads) <= first + 1, "once more at most: the count was one too high"
    asyncio.run(block())
    assert [stall.culprit.function for stall in watch.new_stalls()] == ["slow"]
