from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.building.stalls import BEGAN, HOSTILE, KILLED, MS, SESSION, STALL, S, hostile_stall, session, stall
from tests.store.aging import AGE, young

from loopcanary.model import Cause, SessionEnd, Stall, StallState
from loopcanary.model.search import STALLS, IssueMark, IssueQuery, SessionMark
from loopcanary.store import Retention, Store

ALL = IssueQuery()


def fill(store: Store, count: int, **changes: object) -> None:
    store.put([], [stall(id=f"s1-{i}", began_wall_ns=BEGAN + i * S, **changes) for i in range(count)])


# ---- what is put comes back ---------------------------------------------------------------------


def test_a_stall_comes_back_as_it_was_put(store: Store) -> None:
    store.put_issue(KILLED)
    assert store.reader.issue(KILLED.id) == KILLED
    assert store.reader.issues(STALLS) == [KILLED]


def test_a_session_comes_back_as_it_was_put_last(store: Store) -> None:
    store.put_session(session(end=SessionEnd.RUNNING, ended_wall_ns=None))
    store.put_session(SESSION)
    assert store.reader.sessions(ALL) == [SESSION]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_are_stored_and_found(store: Store, text: str) -> None:
    put = hostile_stall(text)
    store.put_issue(put)
    assert store.reader.issues(STALLS) == [put]
    assert store.reader.totals(IssueQuery(words=(text[:50],)).stalls).issues == 1


def test_numbers_beyond_what_a_column_holds_do_not_end_a_report(store: Store) -> None:
    huge = stall(duration_ns=1 << 51, began_wall_ns=1 << 62)
    store.put([], [huge, stall(id="s1-9", duration_ns=1 << 51, began_wall_ns=1 << 62)])
    assert store.reader.totals(STALLS).total_ns == 1 << 52


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        (StallState.ONGOING, StallState.ENDED, StallState.ENDED),
        (StallState.ONGOING, StallState.KILLED, StallState.KILLED),
        (StallState.KILLED, StallState.ENDED, StallState.ENDED),
        (StallState.ENDED, StallState.KILLED, StallState.ENDED),
        (StallState.KILLED, StallState.CRASHED, StallState.CRASHED),
        (StallState.CRASHED, StallState.KILLED, StallState.CRASHED),
        (StallState.ENDED, StallState.CRASHED, StallState.ENDED),
        (StallState.ENDED, StallState.ONGOING, StallState.ENDED),
        (StallState.KILLED, StallState.ONGOING, StallState.KILLED),
    ],
)
def test_what_is_known_of_a_stall_only_grows(
    store: Store, first: StallState, second: StallState, kept: StallState
) -> None:
    store.put_issue(stall(state=first))
    store.put_issue(stall(state=second))
    found = store.reader.issue(STALL.id)
    assert found is not None
    assert found.state is kept


# ---- groups and search --------------------------------------------------------------------------


def test_groups_are_the_bugs_by_total_time(store: Store) -> None:
    store.put(
        [],
        [
            stall(id=f"a-{i}", duration_ns=ns * MS, began_wall_ns=BEGAN + i)
            for i, ns in enumerate([100, 400, 200])
        ]
        + [stall(id="b-1", fingerprint="b", title="other", duration_ns=9 * S, cause=Cause.LOCK)],
    )
    first, second = store.reader.groups(STALLS)
    assert (first.fingerprint, first.title, first.cause, first.count) == ("b", "other", Cause.LOCK, 1)
    assert (second.count, second.total_ns, second.p50_ns, second.max_ns) == (3, 700 * MS, 200 * MS, 400 * MS)
    assert (second.first_wall_ns, second.last_wall_ns, second.worst_id) == (BEGAN, BEGAN + 2, "a-1")
    assert second.culprit == STALL.culprit
    assert [group.fingerprint for group in store.reader.groups(STALLS, 1)] == ["b"]


def test_stalls_by_the_host_have_no_one_place(store: Store) -> None:
    store.put([], [stall(id="a", cause=Cause.HOST)])
    assert store.reader.groups(STALLS)[0].culprit == STALL.culprit
    store.put([], [stall(id="b", cause=Cause.HOST)])
    assert store.reader.groups(STALLS)[0].culprit is None


def of_causes(*stalls: tuple[Cause, int, float]) -> list[Stall]:
    """One bug's stalls, in order of time: cause, milliseconds, confidence."""
    return [
        stall(
            id=f"s1-{number}",
            began_wall_ns=BEGAN + number,
            cause=cause,
            title=f"{cause.value} {length} ms",
            advice=f"less {cause.value}",
            duration_ns=length * MS,
            confidence=confidence,
        )
        for number, (cause, length, confidence) in enumerate(stalls)
    ]


@pytest.mark.parametrize(
    ("stalls", "cause", "length"),
    [
        ([(Cause.SLEEP, 150, 0.9), (Cause.SLEEP, 200, 0.9), (Cause.SLEEP, 120, 0.9)], Cause.SLEEP, 200),
        (
            [(Cause.SLEEP, 150, 0.98), (Cause.SLEEP, 160, 0.98), (Cause.NATIVE_CPU, 400, 0.24)],
            Cause.SLEEP,
            160,
        ),
        ([(Cause.SLEEP, 150, 0.98), (Cause.NATIVE_CPU, 400, 0.9)], Cause.NATIVE_CPU, 400),
        ([(Cause.LOCK, 110, 0.9), (Cause.SLEEP, 130, 0.9), (Cause.LOCK, 120, 0.9)], Cause.LOCK, 120),
    ],
    ids=["the longest", "a sure cause before a guess", "time", "the sum of times"],
)
def test_time_and_confidence_name_a_bug(
    store: Store, stalls: list[tuple[Cause, int, float]], cause: Cause, length: int
) -> None:
    store.put([], of_causes(*stalls))
    [group] = store.reader.groups(STALLS)
    assert (group.cause, group.title) == (cause, f"{cause.value} {length} ms")
    assert group.advice == f"less {cause.value}"


QUERIES = {
    "everything": (ALL, {"s1-1", "s1-2"}),
    "since includes its moment": (IssueQuery(since_wall_ns=KILLED.began_wall_ns), {"s1-2"}),
    "until excludes its moment": (IssueQuery(until_wall_ns=KILLED.began_wall_ns), {"s1-1"}),
    "any of several causes": (IssueQuery(causes=frozenset({Cause.LOCK, Cause.GIL})), {"s1-2"}),
    "a word in any case": (IssueQuery(words=("CHECKOUT",)), {"s1-2"}),
    "all of several words": (IssueQuery(words=("orders.py", "json", "task-17")), {"s1-1"}),
    "a word that is a wildcard elsewhere": (IssueQuery(words=("%",)), set()),
    "a quote is only a quote": (IssueQuery(words=("' OR 1=1 --",)), set()),
    "a session's start": (IssueQuery(session="s"), {"s1-1", "s1-2"}),
    "another session": (IssueQuery(session="s2"), set()),
    "a program": (IssueQuery(program="shop"), {"s1-1", "s1-2"}),
    "another program": (IssueQuery(program="sho"), set()),
    "a fingerprint": (IssueQuery(fingerprint="1:dead"), {"s1-2"}),
}


@pytest.mark.parametrize(("query", "found"), QUERIES.values(), ids=QUERIES)
def test_search(store: Store, query: IssueQuery, found: set[str]) -> None:
    store.put([SESSION], [STALL, KILLED])
    assert {one.id for one in store.reader.issues(query)} == found
    assert store.reader.totals(query).issues == len(found)
    assert sum(group.count for group in store.reader.groups(query)) == len(found)


def test_sessions_are_those_that_ran_in_the_time(store: Store) -> None:
    store.put([SESSION, session(id="s2", started_wall_ns=BEGAN + 100 * S, ended_wall_ns=None)], [])
    assert [one.id for one in store.reader.sessions(ALL)] == ["s2", "s1"]
    assert [one.id for one in store.reader.sessions(IssueQuery(since_wall_ns=BEGAN + 90 * S))] == ["s2"]
    assert [one.id for one in store.reader.sessions(IssueQuery(until_wall_ns=BEGAN))] == ["s1"]
    assert [one.id for one in store.reader.sessions(IssueQuery(session="s1"))] == ["s1"]
    assert [one.id for one in store.reader.sessions(IssueQuery(program="shop"))] == ["s2", "s1"]
    assert store.reader.sessions(IssueQuery(program="mail")) == []


def test_marks_are_stalls_and_sessions_in_short(store: Store) -> None:
    store.put([SESSION, session(id="s2", version="1.2")], [STALL, KILLED])
    first = IssueMark(
        STALL.fingerprint, "s1", "MainThread", "asyncio", STALL.began_wall_ns, STALL.duration_ns
    )
    assert store.reader.marks(STALLS, [STALL.fingerprint, "1:none"]) == [first]
    assert {mark.thread for mark in store.reader.marks(STALLS)} == {"MainThread", "worker-2"}
    assert store.reader.marks(IssueQuery(until_wall_ns=BEGAN).stalls.stalls) == []
    ended = SESSION.ended_wall_ns
    assert set(store.reader.session_marks(ALL)) == {
        SessionMark("s1", "shop", "", SESSION.started_wall_ns, ended, killed=True),
        SessionMark("s2", "shop", "1.2", SESSION.started_wall_ns, ended, killed=True),
    }


def test_marks_of_live_stalls_are_there_too(store: Store) -> None:
    store.put([SESSION], [STALL])
    store.overlay([session(id="now")], [stall(id="now-1", thread="io")])
    assert {mark.thread for mark in store.reader.marks(STALLS, [STALL.fingerprint])} == {"MainThread", "io"}
    assert {mark.id for mark in store.reader.session_marks(ALL)} == {"s1", "now"}


def test_prefixes_find_ids_and_fingerprints(store: Store) -> None:
    store.put([], [STALL, KILLED])
    assert store.reader.like("id", "s1-", STALLS) == ["s1-1", "s1-2"]
    assert store.reader.like("fingerprint", "1:d", ALL) == ["1:dead"]
    assert store.reader.like("id", "s1-_", ALL) == []


# ---- live ones over stored ones -----------------------------------------------------------------


def test_live_stalls_are_shown_and_not_stored(store: Store, make_store: Callable[..., Store]) -> None:
    store.put([SESSION], [STALL, stall(id="s9-1", state=StallState.ONGOING)])
    live = stall(id="s9-1", state=StallState.ONGOING, duration_ns=60 * S)
    store.overlay([session(id="s9")], [live])
    assert store.reader.issue("s9-1") == live
    assert store.reader.totals(STALLS).issues == 2
    assert store.reader.groups(STALLS)[0].max_ns == 60 * S
    assert {one.id for one in store.reader.sessions(ALL)} == {"s1", "s9"}
    other = make_store()
    assert other.reader.totals(STALLS).total_ns == 2 * STALL.duration_ns
    assert [one.id for one in other.reader.sessions(ALL)] == ["s1"]


def test_an_overlay_survives_a_new_connection(store: Store) -> None:
    store.overlay([], [stall(id="x")])
    store.overlay([], [stall(id="y")])
    store.close()
    assert [one.id for one in store.reader.issues(STALLS)] == ["y"]


def test_stalls_are_put_and_deleted_under_an_overlay(store: Store) -> None:
    store.overlay([], [KILLED])
    store.put_issue(STALL)
    assert store.reader.totals(STALLS).issues == 2
    assert store.maintenance.delete(ALL) == 1
    assert store.reader.issues(STALLS) == [KILLED]


# ---- deleting and retention -----------------------------------------------------------------------


def test_deleting_by_query_id_and_number(store: Store) -> None:
    fill(store, 10)
    seen = [("s1-0", "ended"), ("s1-1", "ended"), ("s1-2", "killed"), ("unknown", "ended")]
    assert store.maintenance.delete_as_seen(seen) == 2
    assert store.maintenance.delete(IssueQuery(until_wall_ns=BEGAN + 4 * S)) == 2
    assert store.maintenance.delete_all_but_newest(4) == 2
    assert [one.id for one in store.reader.issues(STALLS)] == ["s1-9", "s1-8", "s1-7", "s1-6"]
    assert store.maintenance.delete(IssueQuery(fingerprint=STALL.fingerprint)) == 4


def test_deleting_everything_leaves_running_sessions(store: Store) -> None:
    store.put([SESSION, session(id="s2", end=SessionEnd.RUNNING, ended_wall_ns=None)], [STALL])
    assert store.maintenance.delete(ALL) == 1
    assert [one.id for one in store.reader.sessions(ALL)] == ["s2"]


def test_more_stalls_than_one_batch_are_deleted(store: Store) -> None:
    fill(store, 2_500, stacks=())
    assert store.maintenance.delete(ALL) == 2_500
    assert store.reader.totals(STALLS).issues == 0


def test_retention_by_number_removes_the_oldest(make_store: Callable[..., Store]) -> None:
    store = make_store(retention=Retention(age_ns=1 << 62, stalls=3))
    fill(store, 10)
    store.maintenance.sweep()
    assert [one.id for one in store.reader.issues(STALLS)] == ["s1-9", "s1-8", "s1-7"]


def test_retention_by_age_removes_the_old_and_their_sessions(make_store: Callable[..., Store]) -> None:
    store = make_store(retention=AGE)
    store.put([SESSION], [young(), STALL])
    assert [one.id for one in store.reader.issues(STALLS)] == ["young"]
    assert store.reader.sessions(ALL) == []


def test_retention_by_bytes_gives_the_space_back(make_store: Callable[..., Store]) -> None:
    limit = 600_000
    store = make_store(retention=Retention(age_ns=1 << 62, bytes=limit))
    fill(store, 600)
    store.maintenance.sweep()
    left = store.reader.totals(STALLS).issues
    assert 0 < left < 600
    assert store.maintenance.used_bytes() <= limit
    store.close()
    assert store.path.stat().st_size <= limit


def test_sweeping_happens_as_stalls_come(make_store: Callable[..., Store]) -> None:
    store = make_store(retention=Retention(age_ns=1 << 62, stalls=10))
    for i in range(600):
        store.put_issue(stall(id=f"s1-{i}", began_wall_ns=BEGAN + i, stacks=()))
    assert store.reader.totals(STALLS).issues < 600


# ---- the folder -------------------------------------------------------------------------------------


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_store_is_private_and_kept_out_of_commits(store: Store, folder: Path) -> None:
    previous = os.umask(0)
    try:
        store.put_issue(STALL)
    finally:
        os.umask(previous)
    assert mode(folder) == 0o700
    assert {mode(path) for path in folder.iterdir()} == {0o600}
    assert (folder / ".gitignore").read_text().endswith("*\n")


def test_a_folder_that_only_the_engine_has_used_is_made_private(
    make_store: Callable[..., Store], tmp_path: Path
) -> None:
    folder = tmp_path / ".loopcanary"
    (folder / "flight").mkdir(parents=True)
    folder.chmod(0o755)
    make_store(folder=folder).put_issue(STALL)
    assert mode(folder) == 0o700
    assert (folder / ".gitignore").exists()


def test_another_users_folder_stays_as_it_is(store: Store, folder: Path) -> None:
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    store.put_issue(STALL)
    assert mode(folder) == 0o755
    assert not (folder / ".gitignore").exists()


@pytest.mark.parametrize("name", ["with space", "100%", "what?", "a#b", "ünïcödé", "'quote'"])
def test_folders_may_have_any_name(make_store: Callable[..., Store], tmp_path: Path, name: str) -> None:
    store = make_store(folder=tmp_path / name)
    store.put_issue(STALL)
    assert store.path.is_file()
    assert store.reader.totals(STALLS).issues == 1


def test_writing_goes_on_where_the_store_is_removed_meanwhile(store: Store, folder: Path) -> None:
    import shutil

    store.put_issue(STALL)
    shutil.rmtree(folder)
    store.put_issue(KILLED)
    assert store.reader.issues(STALLS) == [KILLED]
