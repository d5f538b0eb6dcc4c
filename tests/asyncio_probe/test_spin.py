"""A loop that never waits, since the same work asks for itself anew each time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.program.watching import Watched

from loopcanary.probes.asyncio import SPIN_NS, SpinWatch

MS = 1_000_000


class Loop:
    def __init__(self) -> None:
        self.now = 0
        self.ready: list[Any] = []
        self.told: list[tuple[str, int, int, int]] = []
        self.watch = SpinWatch(self.ready, lambda *what: self.told.append(what), lambda: self.now)

    def turn(self, ms: int, *callbacks: Any) -> None:
        """As many turns as are counted before a look."""
        self.ready[:] = [SimpleNamespace(_callback=callback) for callback in callbacks]
        self.watch.look(256)
        self.now += ms * MS


def poll() -> None: ...


def other() -> None: ...


def test_the_same_callback_for_a_second_is_a_spin():
    loop = Loop()
    for _ in range(12):
        loop.turn(100, poll)
    ((name, begin, end, turns),) = loop.told
    assert (name, begin, end, turns) == ("poll", 0, SPIN_NS + 100 * MS, 11 * 256)


def test_a_spin_grows_while_it_lasts_and_ends_with_a_wait():
    loop = Loop()
    for _ in range(95):
        loop.turn(100, poll)
    lengths = [end // MS for _, begin, end, _ in loop.told if begin == 0]
    assert lengths == [1_100, 2_200, 3_300, 4_400, 5_600, 7_100, 8_900]
    loop.watch.look(0)
    loop.watch.look(0)
    assert loop.told[-1] == ("poll", 0, 9_400 * MS, 94 * 256)
    assert len(loop.told) == len(lengths) + 1


def test_a_spin_ends_where_other_work_is_ready():
    loop = Loop()
    for _ in range(13):
        loop.turn(100, poll)
    loop.turn(100, other)
    assert [end // MS for _, _, end, _ in loop.told] == [1_100, 1_200]


def test_a_loop_that_waits_in_between_does_not_spin():
    loop = Loop()
    for _ in range(10):
        for _ in range(9):
            loop.turn(100, poll)
        loop.watch.look(0)
    assert loop.told == []


def test_a_loop_that_is_busy_with_different_work_does_not_spin():
    loop = Loop()
    for number in range(100):
        loop.turn(100, poll if number % 2 else other)
    assert loop.told == []


def test_a_spin_is_found_among_changing_work():
    loop = Loop()
    for _ in range(12):
        loop.turn(100, lambda: None, poll)
    assert [name for name, *_ in loop.told] == ["poll"]


class Poller:
    def poll(self) -> None: ...


def test_a_bound_method_is_the_same_work_each_time():
    loop, poller, bound = Loop(), Poller(), []
    for _ in range(12):
        bound.append(poller.poll)  # kept, so that no two are at one address
        loop.turn(100, bound[-1])
    assert [name for name, *_ in loop.told] == ["Poller.poll"]


def test_methods_of_different_objects_are_different_work():
    loop, pollers = Loop(), [Poller() for _ in range(24)]
    for poller in pollers:
        loop.turn(100, poller.poll)
    assert loop.told == []


def test_a_few_looks_far_apart_prove_nothing():
    loop = Loop()
    for _ in range(3):
        loop.turn(5_000, poll)
    assert loop.told == []


PROGRAM = """
import asyncio, itertools, time
import loopcanary
begun = time.monotonic()
until = begun + 1.6
turns = itertools.count(1)

def is_over():
    # Once it was reported: a busy machine may not run many turns in that time.
    if next(turns) % 1_000:
        return False
    told = any(loop["spun_ms"] for loop in loopcanary.statistics().get("idle", ()))
    return told or time.monotonic() > begun + 100

async def wait_impatiently():
    while not is_over():
        await asyncio.sleep(0)

def ask_again(loop, done):
    if is_over():
        done.set_result(None)
    else:
        loop.call_soon(ask_again, loop, done)

async def wait_patiently():
    while time.monotonic() < until:
        await asyncio.sleep(0.001)

async def keep_asking():
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    ask_again(loop, done)
    await done

async def main():
    {body}

{run}
"""


@pytest.mark.native
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("await wait_impatiently()", "main (task)"),
        ("await asyncio.create_task(wait_impatiently())", "wait_impatiently (task)"),
        ("await keep_asking()", "ask_again"),
        ("await wait_patiently()", None),
        ("await asyncio.gather(*[wait_patiently() for _ in range(50)])", None),
    ],
)
def test_programs_that_spin_and_programs_that_wait(tmp_path, loop, body, name):
    pytest.importorskip(loop)
    watched = Watched(store=tmp_path / "store", engine="native")
    run = f"import {loop}; asyncio.Runner(loop_factory={loop}.new_event_loop).run(main())"
    watched.run("-c", PROGRAM.format(body=body, run=run))
    report = watched.report()
    (session,) = report["sessions"]
    found = [one for one in report["issues"] if one["kind"] != "startup"]
    if name is None:
        assert (found, session["idle"]) == ([], [])
        return
    (issue,) = found
    assert (issue["kind"], issue["handler"], issue["loop"]) == ("idle", name, loop)
    assert issue["runs"] >= 1_000
    assert issue["duration_ms"] > 1_000
    (figures,) = session["idle"]
    assert figures["spun_ms"] == pytest.approx(issue["duration_ms"])
