from __future__ import annotations

import pytest

from loopcanary.keeper.hangs import STAGES_NS, Hangs

S = 1_000_000_000


def test_a_stall_is_due_once_at_each_stage():
    hangs, told = Hangs(), []
    now: int | None = 0
    while now is not None:
        if hangs.is_due(7, 0, now) and hangs.tell(7, now):
            told.append(now)
        now = hangs.due_ns(7, 0, now)
    assert told == list(STAGES_NS) == [S, 5 * S, 30 * S, 300 * S]


def test_one_seen_late_is_reported_at_its_stage_only():
    hangs = Hangs()
    assert hangs.tell(7, 40 * S)
    assert not hangs.tell(7, 50 * S)
    assert hangs.due_ns(7, 0, 50 * S) == 300 * S


@pytest.mark.parametrize(("lasted_s", "is_news"), [(2, False), (4, False), (5, True)])
def test_what_was_reported_is_not_reported_again(lasted_s, is_news):
    hangs = Hangs()
    hangs.tell(7, 2 * S)
    assert hangs.tell(7, lasted_s * S) is is_news


def test_one_that_is_due_and_no_stall_yet_is_looked_at_again():
    assert S < (Hangs().due_ns(7, 0, S) or 0) < 2 * S


def test_stalls_that_are_over_are_forgotten():
    hangs = Hangs()
    for serial in (1, 2):
        hangs.tell(serial, 2 * S)
    hangs.forget_all_but({2})
    assert (hangs.knows(1), hangs.knows(2)) == (False, True)
