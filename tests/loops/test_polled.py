"""When what a program does between two looks at a toolkit's events is a turn of its own."""

from __future__ import annotations

import sys
import unittest

import pytest

from loopcanary.probes.polled import Polled


class Turns:
    """What is told of turns, in the place of LoopHooks."""

    def __init__(self):
        self.told = []

    def wait_end(self):
        self.told.append("begins")

    def wait_begin(self):
        self.told.append("ends")


@pytest.fixture
def turns():
    return Turns()


@pytest.fixture
def polled(turns):
    return Polled(turns)


@pytest.fixture(autouse=True)
def without_tracer():
    """A debugger, or one that measures coverage, has another use for frames."""
    before = sys.gettrace()
    sys.settrace(None)
    yield
    sys.settrace(before)


def pump(polled):
    polled.pumped(sys._getframe(1))


def test_a_loop_that_pumps_is_one_from_the_third_time_on_until_it_returns(polled, turns):
    def program():
        for _ in range(2):
            pump(polled)
        before = list(turns.told)
        for _ in range(5):
            pump(polled)
        return before, list(turns.told)

    assert program() == ([], ["begins"])
    assert turns.told == ["begins", "ends"]


def test_a_loop_whose_function_pumps_is_one(polled, turns):
    def step():
        pump(polled)

    def program():
        for _ in range(4):
            step()
        return list(turns.told)

    assert program() == ["begins"]
    assert turns.told == ["begins", "ends"]


def test_one_call_that_pumps_often_says_nothing_of_its_caller(polled, turns):
    def flush():
        for _ in range(5):
            pump(polled)

    def program():
        flush()
        return list(turns.told)

    assert program() == ["begins", "ends"]


def test_pumps_at_several_places_are_no_loop(polled, turns):
    def program():
        pump(polled)
        pump(polled)
        pump(polled)

    program()
    assert turns.told == []


def test_the_tests_of_a_suite_that_pump_are_no_loop(polled, turns):
    class Test(unittest.TestCase):
        def setUp(self):
            pump(polled)

        def test(self):
            pump(polled)

    result = unittest.TestResult()
    for _ in range(6):
        unittest.TestSuite([Test("test"), Test("test")]).run(result)
    assert result.testsRun == 12
    assert turns.told == []


def test_a_loop_that_raises_is_over_when_its_frame_is_gone(polled, turns):
    def program():
        for _ in range(3):
            pump(polled)
        raise KeyError

    with pytest.raises(KeyError) as caught:
        program()
    del caught
    assert turns.told == ["begins", "ends"]


def test_a_window_that_goes_has_pumps_counted_anew(polled, turns):
    def program():
        for _ in range(6):
            pump(polled)
            polled.over()
        closed_each_time = list(turns.told)
        for number in range(6):
            pump(polled)
            if number == 4:
                polled.over()
        return closed_each_time, turns.told

    assert program() == ([], ["begins", "ends"])


def test_a_tracer_that_comes_later_is_not_disturbed(polled, turns):
    seen = []

    def trace(frame, event, _):
        seen.append(event)
        return trace

    def inner():
        return 1

    def program():
        for _ in range(3):
            pump(polled)
        sys.settrace(trace)
        value = inner()
        sys.settrace(None)
        return value

    assert program() == 1
    assert seen[0] == "call"
    assert turns.told == ["begins", "ends"]


def test_a_generator_that_pumps_is_its_consumers_loop(polled, turns):
    def ticks():
        while True:
            pump(polled)
            yield

    def program(kept):
        for _ in range(4):
            next(kept)
        return list(turns.told)

    kept = ticks()  # suspended, and alive
    assert program(kept) == ["begins"]
    assert turns.told == ["begins", "ends"]


def test_the_trace_function_of_another_stays(polled):
    def program():
        sys._getframe().f_trace = print  # a debugger that rests
        for _ in range(4):
            pump(polled)
        return sys._getframe().f_trace

    assert program() is print
