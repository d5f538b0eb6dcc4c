"""Groups and their course, filtered: what an index answers is what the rows say."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from tests.building.stalls import BEGAN, SESSION, STALL, S, session, stall

from loopcanary.model import Cause, StallState
from loopcanary.model.search import STALLS, GroupSums, IssueQuery
from loopcanary.store import Store

QUERIES = {
    "all": IssueQuery(),
    "a cause": IssueQuery(causes=frozenset({Cause.LOCK})),
    "two causes and a time": IssueQuery(
        causes=frozenset({Cause.LOCK, Cause.CPU}), since_wall_ns=BEGAN + 40 * S, until_wall_ns=BEGAN + 160 * S
    ),
    "a scene": IssueQuery(scene="checkout"),
    "no scene": IssueQuery(scene=""),
    "own code": IssueQuery(in_app=True),
    "a library's": IssueQuery(in_app=False),
    "a session": IssueQuery(session="b"),
    "a program": IssueQuery(program="mail"),
    "a bug and own code": IssueQuery(fingerprint="1:3", in_app=True),
    "a word": IssueQuery(words=("charge",)),
    "nothing": IssueQuery(scene="nowhere"),
}


@pytest.fixture
def many(store: Store) -> Store:
    chance = random.Random(7)
    assert STALL.culprit is not None
    library = stall(culprit=None).culprit
    store.put(
        [SESSION, session(id="b", name="mail")],
        [
            stall(
                id=f"x-{number}",
                session=chance.choice(["s1", "b"]),
                fingerprint=f"1:{chance.randrange(6)}",
                cause=chance.choice([Cause.LOCK, Cause.CPU, Cause.DNS]),
                scene=chance.choice([None, "checkout", "search"]),
                task=chance.choice(["charge", "ship"]),
                culprit=chance.choice([STALL.culprit, library]),
                began_wall_ns=BEGAN + number * S,
                duration_ns=chance.randrange(1, 5) * S,
            )
            for number in range(200)
        ],
    )
    return store


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_groups_and_cells_are_those_of_the_stalls(many: Store, query: IssueQuery) -> None:
    found = many.reader.issues(query)
    by_bug: dict[str, list] = {}
    for one in found:
        by_bug.setdefault(one.fingerprint, []).append(one)
    groups = many.reader.groups(query)
    assert {group.fingerprint for group in groups} == set(by_bug)
    for group in groups:
        of_it = by_bug[group.fingerprint]
        durations = sorted(one.duration_ns for one in of_it)
        assert (group.count, group.total_ns) == (len(of_it), sum(durations))
        assert (group.p50_ns, group.max_ns) == (durations[(len(durations) - 1) // 2], durations[-1])
        assert group.first_wall_ns == min(one.began_wall_ns for one in of_it)
        assert group.last_wall_ns == max(one.began_wall_ns for one in of_it)
        worst = max(of_it, key=lambda one: (one.duration_ns, one.began_wall_ns))
        assert group.worst_id == worst.id
    sums = [
        GroupSums(
            one.fingerprint,
            one.count,
            one.total_ns,
            max(of.began_wall_ns + of.duration_ns for of in found if of.fingerprint == one.fingerprint),
        )
        for one in groups
    ]
    assert many.reader.group_sums(query) == sums
    some = [one.fingerprint for one in groups[:2]]
    assert many.reader.groups(query, 0, some) == groups[:2]
    assert many.reader.groups(query, 1) == groups[:1]
    cells = many.reader.time_cells(
        query, "fingerprint", begin_wall_ns=BEGAN, step_ns=10 * S, cells=21, keys=list(by_bug)
    )
    assert sum(cell.total_ns for cell in cells) == sum(one.duration_ns for one in found)
    by_cause = many.reader.time_cells(query, "cause", begin_wall_ns=BEGAN, step_ns=10 * S, cells=21)
    assert sum(cell.issues for cell in by_cause) == len(found)


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_stalls_that_go_on_are_in_them(many: Store, query: IssueQuery) -> None:
    live = stall(id="live", session="b", fingerprint="1:3", scene="checkout", task="charge", cause=Cause.LOCK,
                 state=StallState.ONGOING, began_wall_ns=BEGAN + 100 * S, duration_ns=9 * S)  # fmt: skip
    many.overlay([], [live])
    found = many.reader.issues(query)
    assert sum(group.count for group in many.reader.groups(query)) == len(found)
    assert sum(sums.total_ns for sums in many.reader.group_sums(query)) == sum(
        one.duration_ns for one in found
    )


def test_its_state_changes_with_whatever_an_answer_depends_on(
    store: Store, make_store: Callable[..., Store]
) -> None:
    other = make_store()
    states = [store.reader.state()]
    changes = [
        lambda: store.put([SESSION], [STALL]),
        lambda: other.put([], [stall(id="s1-8")]),
        lambda: store.overlay([], [stall(id="live")]),
        lambda: store.overlay([], []),
        lambda: other.maintenance.delete(IssueQuery(fingerprint=STALL.fingerprint)),
        store.close,
    ]
    for change in changes:
        change()
        states.append(store.reader.state())
        assert states[-1] == store.reader.state()
    assert len(set(states)) == len(states)


def test_looking_at_it_does_not_change_its_state(store: Store) -> None:
    store.put([SESSION], [STALL])
    store.overlay([], [])
    state = store.reader.state()
    store.overlay([], [])
    assert store.reader.groups(STALLS)
    assert store.reader.state() == state
