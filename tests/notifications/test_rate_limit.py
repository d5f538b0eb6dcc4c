from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from loopcanary.notifications import rate_limit
from loopcanary.notifications.rate_limit import OTHERS, RateLimit

S = 1_000_000_000
MINUTE = 60 * S


def limit(every_s: int = 60, per_minute: int = 6) -> RateLimit[str]:
    return RateLimit(every_ns=every_s * S, per_minute=per_minute)


def test_the_first_of_a_bug_is_notified_at_once():
    one = limit()
    first = one.offer(0, "bug", S, "a")
    assert first is not None
    assert (first.item, first.withheld.count, first.is_counted) == ("a", 0, False)
    assert one.offer(10 * S, "bug", 2 * S, "b") is None
    assert one.offer(20 * S, "bug", 3 * S, "c") is None
    assert one.due(59 * S) == []
    (summary,) = one.due(60 * S)
    assert summary.item == "c"
    assert summary.is_counted
    withheld = summary.withheld
    assert (withheld.count, withheld.total_ns, withheld.max_ns) == (2, 5 * S, 3 * S)
    assert withheld.since_ns == 10 * S
    assert one.due(200 * S) == []


def test_a_later_one_says_what_was_withheld_before_it():
    one = limit()
    one.offer(0, "bug", S, "a")
    one.offer(S, "bug", S, "b")
    told = one.offer(61 * S, "bug", 9 * S, "c")
    assert told is not None
    assert (told.item, told.withheld.count, told.withheld.total_ns, told.is_counted) == ("c", 1, S, False)


def test_groups_do_not_hide_each_other_but_for_the_limit_of_all():
    one = limit(per_minute=2)
    assert one.offer(0, "a", S, "a") is not None
    assert one.offer(0, "b", S, "b") is not None
    assert one.offer(0, "c", 5 * S, "c") is None
    assert one.offer(0, "d", 9 * S, "d") is None
    assert one.due(59 * S) == []
    assert [permit.item for permit in one.due(60 * S)] == ["d", "c"]  # most time first


def test_uncounted_notifications_use_up_the_limit():
    one = limit(per_minute=1)
    assert one.admits(0, "bug over")
    assert not one.admits(59 * S, "bug over")
    assert one.offer(59 * S, "bug", S, "a") is None
    assert one.admits(60 * S, "bug over")
    assert one.withheld == 1


def test_a_clock_that_goes_back_lets_nothing_through():
    one = limit()
    one.offer(100 * S, "bug", S, "a")
    assert one.offer(0, "bug", S, "b") is None
    assert one.due(0) == []


def test_the_table_of_bugs_is_bounded(monkeypatch):
    monkeypatch.setattr(rate_limit, "_GROUPS_MAX", 3)
    one = limit(per_minute=1)
    for name in "abcde":
        one.offer(0, name, S, name)
    assert len(one._groups) == 4  # one for all others
    assert one._groups[OTHERS].withheld.count == 2
    assert one.rest().count == 4
    # Later those of which there is nothing to say make room.
    one.offer(2 * MINUTE, "f", S, "f")
    assert "f" in one._groups


OFFERS = st.lists(
    st.tuples(
        st.sampled_from(["offer", "offer", "offer", "due", "admits"]),
        st.integers(0, 90 * S),  # since the one before
        st.sampled_from("abcdefgh"),
        st.integers(0, 100 * S),
    ),
    max_size=200,
)


@given(OFFERS, st.integers(1, 120), st.integers(1, 5))
def test_never_more_than_allowed_and_nothing_is_lost(steps, every_s, per_minute):
    one: RateLimit[tuple[str, int]] = RateLimit(every_ns=every_s * S, per_minute=per_minute)
    now = 0
    told: list[tuple[int, str]] = []
    counted = total = offered = offered_ns = 0

    def take(permit):
        nonlocal counted, total
        key, duration_ns = permit.item
        told.append((now, key))
        counted += permit.withheld.count + (not permit.is_counted)
        total += permit.withheld.total_ns + (0 if permit.is_counted else duration_ns)

    for what, later, key, duration_ns in steps:
        now += later
        if what == "due":
            for permit in one.due(now):
                take(permit)
        elif what == "admits":
            if one.admits(now, f"{key} over"):
                told.append((now, ""))
        else:
            offered, offered_ns = offered + 1, offered_ns + duration_ns
            permit = one.offer(now, key, duration_ns, (key, duration_ns))
            if permit is not None:
                take(permit)
    assert counted + one.withheld == offered
    rest = one.rest()
    assert (counted + rest.count, total + rest.total_ns) == (offered, offered_ns)
    assert one.rest().count == 0
    for at, _ in told:
        assert sum(at <= other < at + MINUTE for other, _ in told) <= per_minute
    for name in Counter(key for _, key in told if key):
        times = [at for at, key in told if key == name]
        assert all(later - earlier >= every_s * S for earlier, later in pairwise(times))
