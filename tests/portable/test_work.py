from __future__ import annotations

import pytest

from loopcanary.portable.lane import WorkTally
from loopcanary.portable.work import WorkBrackets

from .conftest import name_of

MS = 1_000_000


class Thread:
    """A thread that has a lane of its own, and at times a loop in the middle of a turn."""

    def __init__(self, own, loop_lane, clock):
        self.own, self.loop_lane, self.in_turn, self.opened = own, loop_lane, False, 0
        self.brackets = WorkBrackets(clock, lambda: loop_lane if self.in_turn else None, self.open)

    def open(self):
        self.opened += 1
        return self.own


@pytest.fixture
def thread(lane, ticked_lane, clock):
    return Thread(lane, ticked_lane, clock)


def test_work_is_timed_as_a_callback_of_that_name(thread, lane, clock):
    for ms in (50, 150):
        thread.brackets.begin("job")
        clock.pass_ms(ms)
        thread.brackets.end()
    assert [(name_of(ended), (ended.end_ns - ended.begin_ns) // MS) for ended in lane.ended] == [("job", 150)]
    assert (lane.turns, thread.opened) == (2, 1)


def test_nested_work_is_a_part_of_the_outer(thread, lane, clock):
    thread.brackets.begin("outer")
    thread.brackets.begin("inner")
    clock.pass_ms(150)
    thread.brackets.end()
    clock.pass_ms(10)
    thread.brackets.end()
    assert [(name_of(ended), (ended.end_ns - ended.begin_ns) // MS) for ended in lane.ended] == [
        ("outer", 160)
    ]


@pytest.mark.parametrize(("ms", "name"), [(150, "job"), (50, None)])
def test_long_work_inside_a_turn_names_the_turn(thread, clock, ms, name):
    ticked_lane, lane = thread.loop_lane, thread.own
    ticked_lane.begin(clock())
    thread.in_turn = True
    thread.brackets.begin("job")
    clock.pass_ms(ms)
    thread.brackets.end()
    ticked_lane.end(clock.pass_ms(60))
    assert [name_of(ended) for ended in ticked_lane.ended] == [name]
    assert lane.turns == 0


def test_work_inside_a_turn_is_tallied_by_name(thread, clock):
    lane = thread.loop_lane
    lane.begin(clock())
    thread.in_turn = True
    for name, ms in (("parse", 50), ("render", 40), ("parse", 60)):
        thread.brackets.begin(name)
        clock.pass_ms(ms)
        thread.brackets.end()
    lane.end(clock())
    lane.begin(clock())
    thread.brackets.begin("next turn's")
    clock.pass_ms(90)
    thread.brackets.end()
    lane.end(clock.pass_ms(20))
    first, second = (ended.tally.contributors() for ended in lane.ended)
    assert [(one.name, one.count, one.total_ns // MS, one.longest_ns // MS) for one in first] == [
        ("parse", 2, 110, 60),
        ("render", 1, 40, 40),
    ]
    assert [one.name for one in second] == ["next turn's"]


def test_names_beyond_the_tallys_room_are_counted(clock):
    tally = WorkTally()
    for number in range(40):
        tally.add(f"work {number}", MS)
        tally.add(f"work {number}", MS)
    assert len(tally.contributors()) == 32
    assert tally.dropped == 2 * 8


def test_an_end_too_many_is_nothing(thread, lane, clock):
    thread.brackets.end()
    thread.brackets.begin("job")
    thread.brackets.end()
    thread.brackets.end()
    assert lane.turns == 1


def test_without_a_lane_work_goes_on_untimed(clock):
    brackets = WorkBrackets(clock, lambda: None, lambda: None)
    brackets.begin("job")
    brackets.end()


def test_a_lane_that_was_closed_is_opened_again(thread, lane, clock):
    thread.brackets.begin("job")
    thread.brackets.end()
    lane.close(clock())
    thread.brackets.begin("job")
    assert thread.opened == 2
