"""Runs of trio that never wait, since the same task is ready each time."""

from __future__ import annotations

import pytest
from tests.program.watching import Watched

PROGRAM = """
import itertools, time
import trio
import trio.testing
import loopcanary
begun = time.monotonic()
until = begun + 1.6
turns = itertools.count(1)

def is_over():
    # Long enough, or once it was reported: a busy machine may not run many turns in that time.
    if next(turns) % 1_000 or time.monotonic() < until:
        return False
    told = any(loop["spun_ms"] for loop in loopcanary.statistics().get("idle", ()))
    return told or not {spins} or time.monotonic() > begun + 100

async def wait_impatiently():
    while not is_over():
        await trio.lowlevel.checkpoint()

async def wait_patiently():
    while time.monotonic() < until:
        await trio.sleep(0.001)

async def wait_in_virtual_time():
    while not is_over():
        await trio.sleep(1)

async def main():
    async with trio.open_nursery() as nursery:
        for _ in range({count}):
            nursery.start_soon({function})

trio.run(main, clock={clock})
"""


@pytest.mark.native
@pytest.mark.parametrize(
    ("function", "count", "clock", "name"),
    [
        ("wait_impatiently", 1, None, "wait_impatiently (task)"),
        ("wait_patiently", 50, None, None),
        ("wait_in_virtual_time", 2, "trio.testing.MockClock(autojump_threshold=0)", None),
    ],
)
def test_runs_that_spin_and_runs_that_wait(tmp_path, function, count, clock, name):
    pytest.importorskip("trio")
    watched = Watched(store=tmp_path / "store", engine="native")
    watched.run("-c", PROGRAM.format(function=function, count=count, clock=clock, spins=name is not None))
    report = watched.report()
    (session,) = report["sessions"]
    found = [one for one in report["issues"] if one["kind"] == "idle"]
    if name is None:
        assert (found, session["idle"]) == ([], [])
        return
    issue = found[0]
    assert (issue["handler"], issue["loop"]) == (name, "trio")
    assert (
        issue["runs"] >= 256
    )  # the fewest that are looked at; on a crowded machine a second may have no more
    assert issue["duration_ms"] > 1_000
