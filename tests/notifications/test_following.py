"""From what is stored to what is told."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.store.samples import IDLE_LAG, ISSUES, JANK, SESSION, stall

from loopcanary.model import Issue, IssueKind, LagIssue, Session, Severity, Stall, StallState
from loopcanary.model.search import IssueQuery, Remark
from loopcanary.notifications import feed as feed_module
from loopcanary.notifications import standing
from loopcanary.notifications.desk import Desk
from loopcanary.notifications.feed import Feed, Live
from loopcanary.notifications.notice import Notice
from loopcanary.store import Retention, Store, StoreError

S = 1_000_000_000
NOW = time.time_ns()
HANG = stall(session=SESSION.id, severity=Severity.HANG, duration_ns=2 * S, began_wall_ns=NOW)
ONGOING = replace(HANG, id="s1-9", state=StallState.ONGOING)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "store", retention=Retention(age_ns=1 << 62))
    yield made
    made.close()


class Beside:
    """What runs beside the store."""

    def __init__(self) -> None:
        self.live = Live()
        self.error: StoreError | None = None

    def __call__(self) -> Live:
        if self.error is not None:
            raise self.error
        return self.live

    def runs(self, *stalls: Stall, sessions: tuple[Session, ...] = (SESSION,)) -> None:
        self.live = Live(running=sessions, ongoing=stalls)


@pytest.fixture
def beside() -> Beside:
    return Beside()


@pytest.fixture
def feed(store: Store, beside: Beside) -> Feed:
    return Feed(store, beside, NOW)


def ids(found: list[Issue]) -> list[tuple[str, str]]:
    return [(one.id, one.state.value if isinstance(one, Stall) else one.kind.value) for one in found]


def lag(issue: LagIssue, **changed: Any) -> LagIssue:
    """The sample as it happens now, apart from any stall."""
    return replace(issue, **{"session": SESSION.id, "began_wall_ns": NOW, "stalls": (), **changed})


def test_what_is_stored_from_then_on_is_found_once(store: Store, feed: Feed):
    before = replace(HANG, id="s1-0", began_wall_ns=NOW - 60 * S)
    store.put([SESSION], [before, HANG])
    assert ids(feed.take()) == [("s1-1", "ended")]
    assert feed.take() == []
    # Stored later, though it began earlier.
    store.put_issue(replace(before, id="s1-2"))
    assert ids(feed.take()) == [("s1-2", "ended")]


def test_what_was_over_long_ago_is_history_when_it_is_stored(store: Store, feed: Feed):
    assert feed.take() == []
    store.put([], [replace(HANG, id="old", began_wall_ns=NOW - 2 * 3_600 * S), HANG])
    assert ids(feed.take()) == [("s1-1", "ended")]


def test_what_goes_on_is_found_and_how_it_ended(store: Store, feed: Feed, beside: Beside):
    beside.runs(ONGOING)
    assert ids(feed.take()) == [("s1-9", "ongoing")]
    assert feed.is_running
    store.put_issue(ONGOING)  # as the drain does with an ANR
    assert ids(feed.take()) == [("s1-9", "ongoing")] * 2
    store.put_issue(replace(ONGOING, state=StallState.KILLED))
    beside.live = Live()
    assert ids(feed.take()) == [("s1-9", "killed")]
    assert not feed.is_running
    assert feed.take() == []


def test_what_goes_on_and_is_never_stored_is_forgotten(feed: Feed, beside: Beside):
    beside.runs(ONGOING)
    feed.take()
    beside.runs()
    for _ in range(100):
        assert feed.take() == []
    assert feed._open == {}


def test_rows_that_are_given_out_anew_are_new(store: Store, feed: Feed):
    store.put([], [replace(HANG, id=f"s1-{number}") for number in range(5)])
    assert len(feed.take()) == 5
    store.maintenance.delete(IssueQuery())
    assert feed.take() == []
    store.put_issue(replace(HANG, id="s1-new"))
    assert ids(feed.take()) == [("s1-new", "ended")]


def test_more_than_can_be_read_at_once_comes_with_the_next_look(store: Store, feed: Feed, monkeypatch):
    monkeypatch.setattr(feed_module, "_AT_ONCE", 2)
    store.put([], [replace(HANG, id=f"s1-{number}") for number in range(5)])
    assert [len(feed.take()) for _ in range(4)] == [2, 2, 1, 0]


def test_a_bug_that_people_ignore_is_no_news(store: Store, feed: Feed):
    store.remark(HANG.fingerprint, Remark(ignored=True))
    store.put([], [HANG, replace(HANG, id="s1-2", fingerprint="2:other")])
    assert ids(feed.take()) == [("s1-2", "ended")]


def test_the_session_of_a_stall_is_known_while_it_runs_and_later(store: Store, feed: Feed, beside: Beside):
    assert feed.session_of(HANG) is None
    beside.runs()
    feed.take()
    assert feed.session_of(HANG) == SESSION
    store.put_session(SESSION)
    beside.live = Live()
    feed.take()
    found = feed.session_of(HANG)
    assert found is not None
    assert found.name == SESSION.name


@pytest.mark.parametrize("issue", ISSUES, ids=lambda issue: issue.kind.value)
def test_issues_of_every_kind_are_found_once_and_after_stalls(store: Store, feed: Feed, issue: LagIssue):
    store.put_issue(lag(issue, id="before", began_wall_ns=NOW - 60 * S))
    assert feed.take() == []
    store.put_issue(lag(issue))
    store.put_issue(HANG)
    assert ids(feed.take()) == [("s1-1", "ended"), (issue.id, issue.kind.value)]
    assert feed.take() == []
    store.put_issue(lag(issue, id="old", began_wall_ns=NOW - 3 * 3_600 * S))
    assert feed.take() == []


def test_issues_of_rows_that_are_given_out_anew_are_new(store: Store, feed: Feed):
    for number in range(3):
        store.put_issue(lag(JANK, id=f"s1-jank-{number}"))
    assert len(feed.take()) == 3
    store.maintenance.delete(IssueQuery())
    assert feed.take() == []
    store.put_issue(lag(JANK, id="s1-jank-new"))
    assert ids(feed.take()) == [("s1-jank-new", "jank")]


@pytest.mark.parametrize("fails", ["after", "issue", "remarks"])
def test_a_look_that_fails_loses_nothing(store: Store, feed: Feed, beside: Beside, monkeypatch, fails: str):
    beside.runs(ONGOING)
    assert ids(feed.take()) == [("s1-9", "ongoing")]
    beside.runs()
    store.put_issue(HANG)
    store.put_issue(lag(JANK))

    def locked(*_: Any) -> Any:
        raise StoreError("locked")

    with monkeypatch.context() as patch:
        patch.setattr(store.arrivals if fails == "after" else store.reader, fails, locked)
        with pytest.raises(StoreError):
            feed.take()
    assert ids(feed.take()) == [("s1-1", "ended"), (JANK.id, "jank")]
    assert feed.take() == []


def test_what_cannot_be_read_holds_up_nothing_else(store: Store, feed: Feed):
    store.put_issue(HANG)
    store.put_issue(lag(JANK))
    store.put([], [replace(HANG, id="s1-2")])
    store.put_issue(lag(IDLE_LAG))
    with sqlite3.connect(store.folder / "loopcanary.db") as database:
        database.execute("UPDATE payloads SET payload = '{}' WHERE row IN (1, 2)")
    database.close()
    assert ids(feed.take()) == [("s1-2", "ended"), (IDLE_LAG.id, "idle")]
    assert feed.take() == []


def test_issues_of_ignored_stalls_are_no_news(store: Store, feed: Feed):
    store.remark(HANG.fingerprint, Remark(ignored=True))
    store.put_issue(HANG)
    store.put_issue(lag(JANK, stalls=(HANG.id,)))
    store.put_issue(lag(JANK, id="s1-jank-2", stalls=(HANG.id, "s1-other")))
    store.put_issue(lag(IDLE_LAG))
    assert [one.id for one in feed.take()] == ["s1-jank-2", IDLE_LAG.id]
    store.remark(IDLE_LAG.fingerprint, Remark(ignored=True))
    store.put_issue(lag(IDLE_LAG, id="s1-idle-4"))
    assert feed.take() == []


# ---- desk -------------------------------------------------------------------------------------


class Told:
    def __init__(self, *feeds: Feed, per_minute: int = 6, **settings: Any) -> None:
        self.notices: list[Notice] = []
        self.complaints: list[str] = []
        self.desk = Desk(
            feeds,
            every_ns=60 * S,
            **{"from_ns": S, **settings},
            per_minute=per_minute,
            tell=self.notices.append,
            errors=(StoreError,),
            complain=self.complaints.append,
            details="loopcanary report --store /srv/shop",
        )

    def look(self, at_s: int) -> list[str]:
        self.notices.clear()
        self.desk.look(at_s * S)
        return [notice.title.partition(":")[0] for notice in self.notices]


def test_a_hang_is_notified_at_each_step_to_its_end(store, feed, beside):
    told = Told(feed)
    beside.runs(replace(ONGOING, duration_ns=900_000_000))
    assert told.look(0) == []
    beside.runs(ONGOING)
    assert told.look(1) == ["hang of 2.00 s and still in progress"]
    anr = replace(ONGOING, severity=Severity.ANR, duration_ns=6 * S)
    beside.runs(anr)
    assert told.look(5) == ["not responding (ANR) for 6.00 s and still in progress"]
    assert told.look(6) == []
    beside.runs()
    store.put_issue(replace(anr, state=StallState.ENDED, duration_ns=7 * S))
    assert told.look(7) == ["over after 7.00 s"]
    told.desk.end()
    assert told.desk.withheld == 0


def test_a_withheld_hang_is_counted_once(store, feed, beside):
    told = Told(feed)
    store.put_issue(HANG)
    assert told.look(0) == ["hang of 2.00 s"]
    beside.runs(ONGOING)
    assert told.look(1) == []
    assert told.desk.withheld == 0
    beside.runs()
    store.put_issue(replace(ONGOING, state=StallState.ENDED, duration_ns=4 * S))
    assert told.look(2) == []
    assert told.desk.withheld == 1
    assert told.look(60) == ["hang of 4.00 s"]
    assert told.notices[0].stalls == 1


def test_what_was_withheld_is_sent_at_the_end(store, feed):
    told = Told(feed, per_minute=1)
    bugs = [replace(HANG, id=f"s1-{number}", fingerprint=f"2:{number}") for number in range(4)]
    store.put([], bugs)
    assert told.look(0) == ["hang of 2.00 s"]
    told.desk.end()
    assert told.notices[-1].title == "3 more stalls until the end, 6.00 s in all"
    assert sum(notice.stalls for notice in told.notices) == len(bugs)


def test_other_issues_keep_to_the_same_limits_and_counts(store, feed):
    told = Told(feed, from_ns=0)
    store.put_issue(lag(JANK, id="s1-jank-0"))
    assert told.look(0) == ["jank"]
    for number in (1, 2):
        store.put_issue(lag(JANK, id=f"s1-jank-{number}"))
    assert told.look(1) == []
    assert told.desk.withheld == 2
    assert told.look(60) == ["jank"]
    assert told.notices[0].more.startswith("2 of this bug in the last 59.0 s")
    store.put_issue(lag(JANK, id="s1-jank-3"))
    store.put_issue(HANG)
    assert told.look(61) == ["hang of 2.00 s"]
    told.desk.end()
    assert told.notices[-1].title.startswith("1 more issue until the end, ")


def test_only_the_kinds_that_are_asked_for_are_sent(store, feed):
    told = Told(feed, from_ns=0, kinds={IssueKind.IDLE})
    for issue in ISSUES:
        store.put_issue(lag(issue))
    store.put_issue(HANG)
    assert told.look(0) == [IDLE_LAG.title]
    told.desk.end()
    assert len(told.notices) == 1


def test_a_failing_store_does_not_silence_another(store, tmp_path, beside):
    broken = Beside()
    broken.error = StoreError("the store is damaged")
    other = Feed(Store(tmp_path / "other"), broken, NOW)
    told = Told(other, Feed(store, beside, NOW))
    store.put_issue(HANG)
    assert told.look(0) == ["hang of 2.00 s"]
    told.look(1)
    assert told.complaints == ["the store is damaged"]
    assert not told.desk.is_anything_watched


# ---- standing ---------------------------------------------------------------------------------


def test_one_process_sends_one_kind_of_notifications_of_a_store(tmp_path):
    first, second = standing.Claim(tmp_path, "webhook"), standing.Claim(tmp_path, "webhook")
    assert first.take()
    assert not second.take()
    assert standing.is_taken(tmp_path, "webhook")
    assert not standing.is_taken(tmp_path, "desktop")
    first.give_back()
    assert second.take()
    second.give_back()


def test_who_only_looks_does_not_keep_a_follower_away(tmp_path):
    looks = standing.Claim(tmp_path, "webhook")
    assert looks.take()
    own = [standing.Claim(tmp_path, "desktop"), standing.Claim(tmp_path, "webhook")]
    paused: list[float] = []

    def pause(seconds: float) -> None:
        paused.append(seconds)
        if len(paused) == 3:
            looks.give_back()

    assert standing.take_all(own, pause)
    assert len(paused) == 3
    other = [standing.Claim(tmp_path, "other"), standing.Claim(tmp_path, "desktop")]
    assert not standing.take_all(other, paused.append)
    assert not standing.is_taken(tmp_path, "other")
    for claim in own:
        claim.give_back()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # of forks beside other tests' threads
def test_a_child_that_was_forked_meanwhile_keeps_no_claim(tmp_path):
    claim = standing.Claim(tmp_path, "webhook")
    assert claim.take()
    may_end, end = os.pipe()
    child = os.fork()
    if not child:
        os.close(end)
        os.read(may_end, 1)
        os._exit(0)
    try:
        claim.give_back()
        assert not standing.is_taken(tmp_path, "webhook")
    finally:
        os.close(end)
        os.close(may_end)
        os.waitpid(child, 0)


def test_a_read_only_store_is_followed_without_a_claim(tmp_path):
    (tmp_path / "store").write_text("a file where the folder should be")
    assert standing.Claim(tmp_path / "store", "webhook").take()
    assert not standing.is_taken(tmp_path / "store", "webhook")


def test_one_of_many_that_begin_at_once_starts_a_follower(tmp_path):
    assert [standing.may_start(tmp_path) for _ in range(3)] == [True, False, False]
    standing.started(tmp_path)
    assert standing.may_start(tmp_path)


def test_a_follower_that_never_came_to_life_is_not_waited_for(tmp_path, monkeypatch):
    assert standing.may_start(tmp_path)
    later = time.time() + 60
    monkeypatch.setattr(standing.time, "time", lambda: later)
    assert standing.may_start(tmp_path)


def test_a_status_is_what_was_written_last_or_none(tmp_path):
    assert standing.read_status(tmp_path, "webhook") is None
    standing.make_folder(tmp_path / standing.FOLDER)
    standing.write_status(tmp_path, "webhook", {"sent": 1})
    standing.write_status(tmp_path, "webhook", {"sent": 2})
    assert standing.read_status(tmp_path, "webhook") == {"sent": 2}
    assert [path.name for path in (tmp_path / standing.FOLDER).iterdir()] == ["webhook.json"]
    for damaged in ("[1]", "{", "\x00"):
        (tmp_path / standing.FOLDER / "webhook.json").write_text(damaged)
        assert standing.read_status(tmp_path, "webhook") is None
