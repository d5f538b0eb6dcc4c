"""A pool of threads has the figures of one thread; loops have their own."""

from __future__ import annotations

from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from loopcanary.diagnosis.health import loop_health, process_health

from .test_health import MS, totals

DURATIONS = st.lists(st.integers(1 * MS, 300 * MS), max_size=6)
WINDOW_NS = 3_000 * MS


def request_thread(number, durations, **more):
    name = f"Thread-{number} (process_request_thread)"
    return totals(durations, WINDOW_NS, lane=number, loop_kind="thread", thread_name=name, **more)


@given(st.lists(DURATIONS, min_size=2, max_size=4))
def test_numbered_threads_share_one_row(turns):
    lanes = [request_thread(number, durations) for number, durations in enumerate(turns)]
    (pool,) = process_health(lanes, WINDOW_NS)
    one = loop_health(totals([*chain(*turns)], len(turns) * WINDOW_NS, loop_kind="thread"), WINDOW_NS)
    assert pool.thread == f"Thread-* (process_request_thread), {len(turns)} threads"
    for figure in (
        "turns",
        "callbacks",
        "busy_ns",
        "window_ns",
        "utilization",
        "delay_max_ns",
        "delay_mean_ns",
    ):
        assert getattr(pool, figure) == getattr(one, figure), figure
    assert pool.histogram == one.histogram
    assert abs(pool.delay_p99_ns - one.delay_p99_ns) <= one.delay_p99_ns / 8 + 1


def test_what_a_thread_is_in_the_middle_of_counts():
    busy = request_thread(1, [], closed_ns=None, busy_since_ns=WINDOW_NS - 200 * MS)
    (pool,) = process_health([busy, request_thread(2, [100 * MS])], WINDOW_NS)
    assert pool.busy_ns == 300 * MS
    assert pool.delay_max_ns == 200 * MS
    assert pool.window_ns == 2 * WINDOW_NS


def test_loops_and_threads_of_one_name_stay_as_they_are():
    lanes = [
        totals([5 * MS], WINDOW_NS, lane=1, thread_name="Thread-1"),
        totals([5 * MS], WINDOW_NS, lane=2, thread_name="Thread-2"),
        totals([5 * MS], WINDOW_NS, lane=3, loop_kind="thread", thread_name="keeper"),
        totals([5 * MS], WINDOW_NS, lane=4, loop_kind="thread", thread_name="keeper"),
        request_thread(5, [5 * MS]),
    ]
    assert list(process_health(lanes, WINDOW_NS)) == [loop_health(lane, WINDOW_NS) for lane in lanes]
