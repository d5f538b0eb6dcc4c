"""Issues that are no stalls, and what is known of frames, input and idle work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.building.issues import (
    IDLE_LAG,
    INPUT_LAG,
    ISSUES,
    JANK,
    SLOW_METHOD,
    START_IN_TIME,
    STARTUP,
    TRACES,
)
from tests.building.stalls import BEGAN, SESSION, STALL, S
from tests.store.aging import AGE, young

from loopcanary.model import Cause, IssueKind, TraceFigures
from loopcanary.model.search import OTHERS, STALLS, IssueQuery
from loopcanary.store import Retention, Store

ALL = IssueQuery()


@pytest.fixture
def full(store: Store) -> Store:
    store.put([SESSION], [STALL])
    for issue in ISSUES:
        store.put_issue(issue)
    return store


def test_issues_come_back_as_they_were_put_newest_first(full: Store) -> None:
    assert full.reader.issues(OTHERS) == [SLOW_METHOD, STARTUP, IDLE_LAG, INPUT_LAG, JANK]
    assert full.reader.issues(OTHERS, 1) == [SLOW_METHOD]
    assert [full.reader.issue(issue.id) for issue in ISSUES] == list(ISSUES)


def test_an_issue_that_is_put_again_takes_its_own_place(full: Store) -> None:
    full.put_issue(replace(JANK, title="now in another light"))
    assert [issue.title for issue in full.reader.issues(OTHERS) if issue.id == JANK.id] == [
        "now in another light"
    ]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (IssueQuery(words=("boss",)), {"jank", "input", "idle"}),
        (IssueQuery(words=("KEYDOWN",)), {"input"}),
        (IssueQuery(words=("jank", "fps")), {"jank"}),
        (IssueQuery(words=("100%",)), set()),
        (IssueQuery(words=("PANDAS", "cold")), {"startup"}),
        (IssueQuery(words=("_RUN",)), {"slow-method"}),
        (IssueQuery(kind=IssueKind.STARTUP), {"startup"}),
        (IssueQuery(kind=IssueKind.SLOW_METHOD, words=("pandas",)), set()),
        (IssueQuery(since_wall_ns=BEGAN + 10 * S), {"input", "idle", "startup", "slow-method"}),
        (IssueQuery(until_wall_ns=BEGAN + 10 * S), {"jank"}),
        (IssueQuery(causes=frozenset({Cause.GC})), set()),
        (IssueQuery(session=SESSION.id), {"jank", "input", "idle", "startup", "slow-method"}),
        (IssueQuery(fingerprint=JANK.fingerprint), {"jank"}),
    ],
)
def test_issues_are_searched_as_stalls_are(full: Store, query: IssueQuery, found: set[str]) -> None:
    assert {issue.kind.value for issue in full.reader.issues(query.others)} == found


def test_they_are_no_stalls(full: Store) -> None:
    assert full.reader.totals(STALLS).issues == 1
    assert [group.fingerprint for group in full.reader.groups(STALLS)] == [STALL.fingerprint]


def test_what_is_deleted_takes_its_issues_along(full: Store) -> None:
    full.maintenance.delete(IssueQuery(until_wall_ns=BEGAN + 10 * S))
    assert full.reader.issues(OTHERS) == [SLOW_METHOD, STARTUP, IDLE_LAG, INPUT_LAG]
    full.maintenance.delete(IssueQuery(kind=IssueKind.STARTUP))
    assert full.reader.issues(OTHERS) == [SLOW_METHOD, IDLE_LAG, INPUT_LAG]


def test_a_start_within_its_limit_is_kept_and_is_no_bug(full: Store) -> None:
    """It counts where starts are asked for, or it itself."""
    full.put_issue(START_IN_TIME)
    assert full.reader.issues(IssueQuery(kind=IssueKind.STARTUP)) == [START_IN_TIME, STARTUP]
    bugs = {issue.fingerprint for issue in ISSUES}
    assert {group.fingerprint for group in full.reader.groups(OTHERS)} == bugs
    assert {sums.fingerprint for sums in full.reader.group_sums(OTHERS)} == bugs
    assert full.reader.totals(OTHERS).issues == len(ISSUES)
    for query in (IssueQuery(kind=IssueKind.STARTUP), IssueQuery(fingerprint=START_IN_TIME.fingerprint)):
        assert START_IN_TIME in [full.reader.issue(group.worst_id) for group in full.reader.groups(query)]


def test_retention_counts_issues_by_age_and_number(make_store: Callable[..., Store]) -> None:
    store = make_store(retention=Retention(age_ns=1 << 62, stalls=2))
    for issue in ISSUES:
        store.put_issue(issue)
    store.maintenance.sweep()
    assert store.reader.issues(OTHERS) == [SLOW_METHOD, STARTUP]
    old = make_store(retention=AGE)
    old.put_issue(young())
    assert old.reader.issues(OTHERS) == []


def test_a_running_session_tells_what_was_stored_of_its_frames(store: Store) -> None:
    store.put_session(SESSION)
    store.put_traces(SESSION.id, TRACES)
    assert [session.traces for session in store.reader.sessions(ALL)] == [TRACES]


def test_at_its_end_the_session_itself_tells(store: Store) -> None:
    store.put_traces(SESSION.id, TRACES)
    final = replace(TRACES, input=())
    store.put_session(replace(SESSION, traces=final))
    assert [session.traces for session in store.reader.sessions(ALL)] == [final]


def test_a_recovery_that_puts_the_session_anew_keeps_its_frames(store: Store) -> None:
    store.put_traces(SESSION.id, TRACES)
    store.put_session(SESSION)
    store.put_session(replace(SESSION, ended_wall_ns=BEGAN))
    assert [session.traces for session in store.reader.sessions(ALL)] == [TRACES]


def test_live_sessions_have_their_stored_frames_too(store: Store) -> None:
    store.put_traces(SESSION.id, TRACES)
    store.overlay([SESSION], [])
    assert [session.traces for session in store.reader.sessions(ALL)] == [TRACES]


def test_frames_go_with_their_session(store: Store) -> None:
    ended = replace(SESSION, started_wall_ns=BEGAN, ended_wall_ns=BEGAN + S)
    store.put_session(ended)
    store.put_traces(SESSION.id, TRACES)
    store.maintenance.delete(IssueQuery(until_wall_ns=BEGAN + 100 * S))
    assert store.reader.sessions(ALL) == []
    store.put_session(ended)
    assert [session.traces for session in store.reader.sessions(ALL)] == [TraceFigures()]
