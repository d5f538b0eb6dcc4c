from __future__ import annotations

import pytest
from zoo import catalogue, trial
from zoo.truth import Truth
from zoo.waits import Waits

MS = 1_000_000


def read(*readings):
    waits = Waits(0)
    waits._readings = [
        (at * MS, {name: value * MS for name, value in waited.items()}) for at, waited in readings
    ]
    return waits


def test_a_wait_is_the_difference_of_the_readings_around_it():
    waits = read((10, {"7": 5}), (20, {"7": 6}), (30, {"7": 16}), (40, {"7": 18}), (50, {"7": 30}))
    assert waits.between_ms(7, 25 * MS, 35 * MS) == 12


def test_a_thread_that_began_later_waited_from_its_begin_on():
    assert read((10, {}), (30, {"7": 4})).between_ms(7, 15 * MS, 25 * MS) == 4


def test_of_a_stall_without_end_the_last_reading_counts():
    assert read((10, {"7": 1}), (30, {"7": 4}), (40, {"7": 9})).between_ms(7, 15 * MS, 0) == 8


def test_nothing_is_known_of_a_thread_that_was_never_seen():
    assert read((10, {"7": 1})).between_ms(8, 1, 2) == 0


def test_the_longest_wait_is_that_of_any_thread():
    waits = read((10, {"7": 1, "8": 1}), (30, {"7": 4, "8": 41}))
    assert waits.longest_ms(10 * MS, 30 * MS) == 40


def test_the_longest_wait_is_not_a_sum():
    wakes = read(*((10 * i, {"7": i}) for i in range(200)))
    assert wakes.longest_within_ms(100, 0, 1_990 * MS) == 10
    assert wakes.longest_ms(0, 1_990 * MS) == 199


def test_the_longest_wait_may_be_between_two_readings():
    waits = read((0, {"7": 0}), (10, {"7": 1}), (400, {"7": 80}), (410, {"7": 81}), (500, {"7": 161}))
    assert waits.longest_within_ms(100, 0, 420 * MS) == 81
    assert waits.longest_within_ms(100, 0, 410 * MS) == 79
    assert read().longest_within_ms(100, 0, 1) == 0


def test_a_new_thread_waited_from_its_begin_on():
    assert read((0, {}), (50, {"7": 30})).longest_within_ms(100, 0, 50 * MS) == 30


@pytest.mark.parametrize(("each_ms", "disturbed"), [(1, False), (3, True)])
def test_a_stall_long_wait_disturbs_a_control(each_ms, disturbed):
    waits = read(*((10 * i, {"7": each_ms * i}) for i in range(200)))
    truth = Truth(began_ns=0, ended_ns=0, thread=0, plays_ns=0, played_ns=1_990 * MS)
    known = catalogue.read(catalogue.KINDS / "ok_idle.py")
    assert trial._is_disturbed(known, truth, waits) is disturbed


@pytest.mark.parametrize(
    ("kind", "disturbed"), [("sleep", False), ("lock_held", True), ("starved_of_cpu", False)]
)
def test_a_starved_guilty_thread_disturbs_the_run(kind, disturbed):
    waits = read((0, {"7": 0, "8": 0}), (110, {"7": 1, "8": 60}))
    truth = Truth(began_ns=1 * MS, ended_ns=101 * MS, thread=7, plays_ns=0, played_ns=0)
    known = catalogue.read(catalogue.KINDS / f"{kind}.py")
    assert trial._is_disturbed(known, truth, waits) is disturbed
