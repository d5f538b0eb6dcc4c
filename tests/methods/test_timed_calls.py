"""Calls one by one, against the tree that C makes of the same words."""

from __future__ import annotations

import struct
from collections import Counter
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st
from tests.methods.test_tree import ALL, EACH_ENDS, STEPS, Thread, played

from loopcanary.flight.beside.calls import CallSpan, timed_calls

LONG = 1 << 40
"""A window that has everything."""


def timed(thread: Thread, kept: int = ALL, end: int = LONG) -> list[CallSpan]:
    words = thread.words[max(0, len(thread.words) - kept) :]
    return list(timed_calls(struct.pack(f"<{len(words)}Q", *words), thread.stack, -1, end))


def by_function(rows: list[tuple[int, int, int]]) -> dict[int, tuple[int, int]]:
    """Calls and time of each function, of (function, calls, time)."""
    calls: Counter[int] = Counter()
    times: Counter[int] = Counter()
    for number, count, time in rows:
        calls[number] += count
        times[number] += time
    return {number: (calls[number], times[number]) for number in calls}


@given(steps=STEPS)
def test_all_are_the_calls_of_the_tree(steps):
    thread = played(steps)
    tree = thread.tree(ALL, 0, thread.now + 1)
    each = timed(thread, end=thread.now + 1)
    assert by_function([(one.number, 1, one.end_us - max(one.begin_us, 0)) for one in each]) == by_function(
        [(path[-1], calls, total) for path, (calls, total, _, _) in tree.items()]
    )
    open_calls = [(one.number, one.begin_us) for one in each if one.is_open]
    assert open_calls == [tuple(one) for one in thread.stack]


@given(steps=EACH_ENDS, kept=st.integers(0, 60))
def test_one_has_those_inside_it_behind_it(steps, kept):
    for one, later in combinations(timed(played(steps), kept), 2):
        assert later.begin_us >= one.begin_us
        assert later.begin_us >= one.end_us or later.end_us <= one.end_us


@given(steps=EACH_ENDS, kept=st.integers(0, 60))
def test_what_is_gone_began_before(steps, kept):
    thread = played(steps)
    whole = Counter((one.number, one.end_us, one.is_open) for one in timed(thread))
    rest = Counter((one.number, one.end_us, one.is_open) for one in timed(thread, kept))
    assert rest <= whole
    assert rest.total() >= min(whole.total(), kept // 2)
