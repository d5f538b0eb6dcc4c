"""Calls that were read again and again: together they are the tree of the whole."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.methods.test_tree import ALL, WORK, Thread

from loopcanary.flight.beside.calls import AT_NO_WORK
from loopcanary.flight.beside.calls_named import CallsInWindow
from loopcanary.flight.beside.merged_calls import MergedCalls
from loopcanary.model.method_map import Method

native = pytest.importorskip("loopcanary._native")
pytestmark = pytest.mark.native
READ = 2
"""lc_words_before."""
STEP = st.tuples(st.sampled_from(["enter", "leave", "look", "work"]), st.integers(1, 4), st.integers(0, 3))


class Look:
    """What a reader takes at one moment."""

    def __init__(self, thread: Thread) -> None:
        self.at_work = AT_NO_WORK
        self.words, self.stack, self.now = len(thread.words), list(thread.stack), thread.now

    def since(self, before: Look, thread: Thread, rows: int) -> CallsInWindow:
        def read(number: int, count: int) -> bytes:
            return struct.pack(f"<{count}Q", *thread.words[number : number + count])

        opened = b"".join(struct.pack("<QQ", *one) for one in self.stack)
        found, _, left_out, left_out_us, work, self.at_work = native.call_tree(
            read,
            before.words,
            self.words,
            READ,
            opened,
            len(self.stack),
            (before.now, self.now),
            rows,
            before.at_work,
        )
        return CallsInWindow(rows=found, lost=0, left_out=left_out, left_out_ns=left_out_us, work=work)


def play(steps: list[tuple[str, int, int]], rows: int) -> tuple[Thread, MergedCalls]:
    """The thread, and its calls as they were read at each look and at the end."""
    thread, merged = Thread(), MergedCalls()
    last = Look(thread)
    for what, number, pause in [*steps, ("look", 0, 1)]:
        thread.now += pause
        if what == "enter":
            thread.enter(number)
        elif what == "work":
            thread.begin_work(number - 1)
        elif what == "leave" and thread.stack:
            thread.leave(thread.stack[-1][0])
        elif what == "look":
            look = Look(thread)
            merged.add(look.since(last, thread, rows))
            last = look
    return thread, merged


@given(steps=st.lists(STEP, max_size=150))
def test_together_they_are_the_whole(steps):
    thread, merged = play(steps, ALL)
    path: list[int] = []
    found = {}
    for row in merged.named({}, lambda _: False).rows:
        path[row.depth :] = [int(row.frame.qualname.removeprefix("method "))]
        found[tuple(path)] = (row.total_ns, row.self_ns, row.open)
    whole = thread.tree(ALL, 0, thread.now)
    assert found == {key: (total, own, is_open) for key, (_, total, own, is_open) in whole.items()}


@given(steps=st.lists(STEP, max_size=150))
def test_no_call_is_counted_twice(steps):
    thread, merged = play(steps, ALL)
    rows = merged.named({}, lambda _: False).rows
    assert sum(row.calls for row in rows) == len(thread.ended) + len(thread.stack)


@given(steps=st.lists(STEP, max_size=150))
def test_work_that_goes_on_over_a_look_is_one_piece(steps):
    thread, merged = play(steps, ALL)
    names = {
        WORK + number: Method(number=WORK + number, qualname=f"{number}", file="", line=0)
        for number in range(5)
    }
    found = {int(one.name): (one.times, one.total_ns) for one in merged.named(names, lambda _: False).work}
    assert found == thread.expected_work(0, thread.now)


@given(steps=st.lists(STEP, max_size=150), rows=st.integers(1, 5))
def test_time_that_is_in_no_row_is_said(steps, rows):
    thread, merged = play(steps, rows)
    calls = merged.named({}, lambda _: False)
    whole = thread.tree(ALL, 0, thread.now)
    assert sum(row.self_ns for row in calls.rows) + calls.left_out_ns == sum(
        own for _, _, own, _ in whole.values()
    )
