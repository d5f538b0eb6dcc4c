"""Hooks of loops under the portable engine: what they tell becomes turns, callbacks and stalls."""

from __future__ import annotations

import pytest

from loopcanary.model import StallScope
from loopcanary.portable.stall_watch import make_evidence
from loopcanary.portable.turns import ThreadTurns, TurnHooks

from .conftest import name_of

MS = 1_000_000


class Turns:
    """Hooks of one kind over one lane, on a clock that the test moves."""

    def __init__(self, lane, clock):
        self.lane, self.clock, self.opened = lane, clock, []
        self.turns = ThreadTurns(clock, self.open, lambda: None)
        self.hooks = TurnHooks("novel", None, lambda: self.turns)

    def open(self, kind):
        self.opened.append(kind)
        return self.lane

    def work(self, name, ms):
        self.hooks.work_begin(name)
        self.clock.pass_ms(ms)
        self.hooks.work_end()

    def wait(self, ms):
        self.hooks.wait_begin("what a loop passes", 1)
        self.clock.pass_ms(ms)
        self.hooks.wait_end()

    def stalls(self):
        return [(name_of(one), (one.end_ns - one.begin_ns) // MS) for one in self.lane.ended]


@pytest.fixture
def told(lane, clock):
    return Turns(lane, clock)


def test_turns_and_callbacks_are_counted(told):
    told.hooks.run_begin()
    for _ in range(5):
        told.wait(900)
        told.work("work", 1)
    told.hooks.run_end()
    assert (told.lane.turns, told.lane.callbacks, told.opened) == (6, 5, ["novel"])
    assert told.stalls() == []
    assert told.lane.totals(told.clock()).callbacks == 5


def test_a_long_callback_names_its_turn_whatever_comes_after_it(told):
    told.hooks.run_begin()
    told.work("short", 1)
    told.work("long", 200)
    told.work("short", 1)
    told.wait(1)
    assert told.stalls() == [("long", 202)]


def test_many_short_callbacks_are_a_turn_with_contributors(told):
    told.hooks.run_begin()
    for _ in range(20):
        told.work("one", 6)
        told.work("other", 2)
    told.wait(1)
    assert told.stalls() == [(None, 160)]
    (ended,) = told.lane.ended
    assert [(one.name, one.count, one.total_ns // MS) for one in ended.tally.contributors()] == [
        ("one", 20, 120),
        ("other", 20, 40),
    ]


def test_a_callback_outside_of_turns_is_one(told):
    told.work("by itself", 150)
    told.clock.pass_ms(900)
    told.work("by itself", 1)
    assert (told.stalls(), told.lane.turns, told.lane.look()) == ([("by itself", 150)], 2, None)


def test_a_loop_inside_a_callback_is_no_part_of_it(told):
    told.hooks.work_begin("opens a dialog")
    told.clock.pass_ms(120)
    told.hooks.run_begin()
    told.wait(900)
    told.work("in the dialog", 130)
    told.wait(900)
    told.hooks.run_end()
    told.clock.pass_ms(140)
    told.hooks.work_end()
    assert told.stalls() == [("opens a dialog", 120), ("in the dialog", 130), ("opens a dialog", 140)]
    assert told.lane.look() is None


def test_what_is_nested_in_a_callback_gives_its_name_back(told):
    told.hooks.work_begin("outer")
    told.work("inner", 1)
    told.clock.pass_ms(150)
    assert told.lane.work(told.lane.epoch) == "outer"
    told.hooks.work_end()
    assert told.stalls() == [("outer", 151)]


def test_an_inner_loop_interrupts_the_outer_one(told, clock, ticked_lane):
    """asyncio.run() in a command."""
    told.hooks.work_begin("command")
    told.clock.pass_ms(10)
    told.turns.enter(ticked_lane)
    assert told.lane.look() is None
    told.clock.pass_ms(900)
    told.turns.leave()
    told.clock.pass_ms(150)
    told.hooks.work_end()
    assert told.stalls() == [("command", 150)]


def test_inside_a_loop_with_a_ticker_nothing_counts_twice(told):
    told.turns.enter(None)
    told.hooks.run_begin()
    told.work("seen by the ticker", 150)
    told.wait(10)
    told.hooks.run_end()
    told.turns.leave()
    assert (told.stalls(), told.opened) == ([], [])
    told.work("after it", 150)
    assert told.stalls() == [("after it", 150)]


def test_whatever_was_not_begun_is_not_ended(told):
    told.hooks.work_end()
    told.hooks.run_end()
    told.hooks.wait_end()
    told.turns.leave()
    assert told.lane.turns == 0
    told.hooks.run_begin()
    told.hooks.run_end()
    told.hooks.run_end()
    assert (told.lane.turns, told.lane.look()) == (1, None)


def test_an_engine_that_has_gone_hears_nothing(told):
    told.hooks.run_begin()
    told.hooks.work_begin("outlives the engine")
    told.turns.stop()
    told.lane.close(told.clock())
    told.hooks.work_end()
    told.hooks.wait_begin()
    told.hooks.wait_end()
    told.hooks.work_begin("later")
    told.hooks.work_end()
    told.hooks.run_end()
    assert told.lane.look() is None


def test_a_fault_of_ours_is_counted_and_does_not_reach_the_loop(told, monkeypatch):
    told.hooks.run_begin()
    monkeypatch.setattr(type(told.lane), "begin", lambda *_: 1 / 0)
    monkeypatch.setattr(type(told.lane), "end", lambda *_: 1 / 0)
    told.wait(1)
    told.work("work", 1)
    told.hooks.run_end()
    told.hooks.run_begin()
    assert told.turns.faults == 4


class Named:
    def __init__(self, names):
        self.names = names

    def work_names(self):
        return self.names()


@pytest.mark.parametrize(
    ("work", "names"),
    [
        pytest.param("a name", ("a name", None), id="text"),
        pytest.param(Named(lambda: ("step", "Task 1")), ("step", "Task 1"), id="what says its names"),
        pytest.param(Turns.open, ("Turns.open", None), id="a function"),
        pytest.param(Named(lambda: 1 / 0), None, id="what fails to"),
    ],
)
def test_work_is_named_when_it_was_long(told, work, names):
    told.work(work, 150)
    (ended,) = told.lane.ended
    assert (None if ended.work is None else (ended.work.name, ended.work.task)) == names


def test_a_burst_is_evidence_of_how_many_there_were(told, clock):
    told.hooks.run_begin()
    for _ in range(30):
        told.work("one", 6)
    clock.pass_ms(20)
    told.wait(1)
    (ended,) = told.lane.ended
    evidence = make_evidence(serial=1, lane=told.lane, case=None, ended=ended)
    assert (evidence.scope, evidence.turn_callbacks) == (StallScope.TURN, 30)
    assert (evidence.turn_callback_ns, evidence.longest_callback_ns) == (180 * MS, 6 * MS)
