"""What a lane ran before a stall: long turns one by one, short ones as sums."""

from __future__ import annotations

import pytest

from loopcanary.model.timeline import ShortWork, WorkKind

MS = 1_000_000


@pytest.fixture
def run(lane, clock):
    """run(ms, works=[(name, ms)], waits_ms): one turn, which consists of these and of the loop's own work."""

    def turn(ms, works=(), waits_ms=0.0):
        lane.begin(clock())
        for name, work_ms in works:
            clock.pass_ms(work_ms)
            lane.callbacks += 1
            lane.note_work(name, int(work_ms * MS))
        lane.end(clock.pass_ms(ms - sum(work_ms for _, work_ms in works)))
        clock.pass_ms(waits_ms)

    return turn


def before_the_stall(lane):
    return lane.ended[-1].earlier


def told(earlier):
    return [(one.kind, one.name, (one.end_ns - one.begin_ns) // MS) for one in earlier.work]


def short(turns, callbacks, busy_ms, idle_ms):
    return ShortWork(turns=turns, callbacks=callbacks, busy_ns=int(busy_ms * MS), idle_ns=int(idle_ms * MS))


def test_long_turns_have_names_short_ones_sums(run, lane):
    run(0.5, [("a", 0.25), ("b", 0.25)], waits_ms=2)
    run(40, [("load", 30), ("a", 5)], waits_ms=100)
    run(0.5, [("a", 0.25)], waits_ms=4)
    run(20, [("a", 7), ("b", 7)], waits_ms=10)
    run(200, [("slow", 200)])
    earlier = before_the_stall(lane)
    assert told(earlier) == [(WorkKind.CALLBACK, "load", 40), (WorkKind.TURN, None, 20)]
    assert [one.short for one in earlier.work] == [short(1, 2, 0.5, 2), short(1, 1, 0.5, 104)]
    assert [(one.callbacks, one.longest_ns // MS) for one in earlier.work] == [(2, 30), (2, 7)]
    assert earlier.last == short(0, 0, 0, 10)
    assert earlier.from_ns == lane.opened_ns


def test_a_stall_is_before_the_next_one(run, lane):
    run(150, [("first", 150)], waits_ms=30)
    run(170, [("second", 170)])
    assert told(before_the_stall(lane)) == [(WorkKind.CALLBACK, "first", 150)]


def test_a_stall_that_lasts_has_its_history(run, lane, clock):
    run(30, waits_ms=10)
    lane.begin(clock())
    began_ns = clock()
    clock.pass_ms(9_000)
    earlier = lane.before(began_ns)
    assert (told(earlier), earlier.last) == ([(WorkKind.TURN, None, 30)], short(0, 0, 0, 10))


def test_a_busy_loop_has_some_seconds_of_history(run, lane):
    for _ in range(5_000):
        run(2, waits_ms=1)
    run(150)
    earlier = before_the_stall(lane)
    # The limit has grown beyond what these took: the last that are known are older than the sums since then.
    assert len(earlier.work) == 64
    assert earlier.work[0].short is None
    assert earlier.last.turns > 4_000
    assert earlier.from_ns == earlier.work[0].begin_ns


def test_the_limit_begins_anew_after_a_quiet_time(run, lane, clock):
    for _ in range(1_000):
        run(2, waits_ms=1)
    clock.pass_ms(10_000)
    run(40, waits_ms=1)
    run(1.5, waits_ms=1)
    run(150)
    assert told(before_the_stall(lane))[-2:] == [(WorkKind.TURN, None, 40), (WorkKind.TURN, None, 1)]


def test_a_loop_with_a_ticker_has_no_number_of_turns(ticked_lane, clock):
    for ms in (30, 150):
        ticked_lane.begin(clock())
        ticked_lane.end(clock.pass_ms(ms))
        clock.pass_ms(10)
    assert ticked_lane.ended[-1].earlier.last == short(0, 0, 0, 10)
