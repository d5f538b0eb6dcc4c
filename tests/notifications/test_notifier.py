"""From what a process stores to what it sends."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.building.issues import IDLE_LAG, ISSUES, JANK
from tests.building.stalls import SESSION, stall
from tests.notifications.receiving import Receiver, receiver

from loopcanary.engine.threads import PythonThread
from loopcanary.model import Config, Issue, IssueKind, LagIssue, Severity, StallState
from loopcanary.notifications.desk import Desk
from loopcanary.notifications.notice import Notice
from loopcanary.notifications.notifier import FOLDER, Notifier, read_status, status_path, write_status

S = 1_000_000_000
NOW = time.time_ns()
HANG = stall(session=SESSION.id, severity=Severity.HANG, duration_ns=2 * S, began_wall_ns=NOW)
ONGOING = replace(HANG, id="s1-9", state=StallState.ONGOING)


def lag(issue: LagIssue, **changed: Any) -> LagIssue:
    """The sample as it happens now, apart from any stall."""
    return replace(issue, **{"session": SESSION.id, "began_wall_ns": NOW, "stalls": (), **changed})


# ---- desk -------------------------------------------------------------------------------------


class Told:
    def __init__(self, per_minute: int = 6, **settings: Any) -> None:
        self.notices: list[Notice] = []
        self.ignored: set[str] = set()
        self.desk = Desk(
            every_ns=60 * S,
            **{"from_ns": S, **settings},
            per_minute=per_minute,
            ignored=lambda: self.ignored,
            tell=self.notices.append,
            details="loopcanary report --store /srv/shop",
        )

    def hear(self, at_s: int, *issues: Issue) -> list[str]:
        self.notices.clear()
        for issue in issues:
            self.desk.hear(issue, SESSION, at_s * S)
        self.desk.look(at_s * S)
        return [notice.title.partition(":")[0] for notice in self.notices]


def test_a_hang_is_notified_at_each_step_to_its_end():
    told = Told()
    assert told.hear(0, replace(ONGOING, duration_ns=900_000_000)) == []
    assert told.hear(1, ONGOING) == ["hang of 2.00 s and still in progress"]
    anr = replace(ONGOING, severity=Severity.ANR, duration_ns=6 * S)
    assert told.hear(5, anr) == ["not responding (ANR) for 6.00 s and still in progress"]
    assert told.hear(6, anr) == []
    over = replace(anr, state=StallState.ENDED, duration_ns=7 * S)
    assert told.hear(7, over) == ["ended after 7.00 s"]
    told.desk.end()
    assert told.desk.withheld == 0


def test_one_that_is_killed_in_a_hang_is_notified_again():
    told = Told()
    told.hear(1, ONGOING)
    assert told.hear(2, replace(ONGOING, state=StallState.KILLED)) == ["killed while stalled for 2.00 s"]


def test_a_withheld_hang_is_counted_once():
    told = Told()
    assert told.hear(0, HANG) == ["hang of 2.00 s"]
    assert told.hear(1, ONGOING) == []
    assert told.desk.withheld == 0
    assert told.hear(2, replace(ONGOING, state=StallState.ENDED, duration_ns=4 * S)) == []
    assert told.desk.withheld == 1
    assert told.hear(60) == ["hang of 4.00 s"]
    assert told.notices[0].stalls == 1


def test_what_was_withheld_is_sent_at_the_end():
    told = Told(per_minute=1)
    bugs = [replace(HANG, id=f"s1-{number}", fingerprint=f"2:{number}") for number in range(4)]
    assert told.hear(0, *bugs) == ["hang of 2.00 s"]
    told.desk.end()
    assert told.notices[-1].title == "3 more stalls until the end, 6.00 s in all"
    assert sum(notice.stalls for notice in told.notices) == len(bugs)


def test_other_issues_keep_to_the_same_limits_and_counts():
    told = Told(from_ns=0)
    assert told.hear(0, lag(JANK, id="s1-jank-0")) == ["jank"]
    assert told.hear(1, *(lag(JANK, id=f"s1-jank-{number}") for number in (1, 2))) == []
    assert told.desk.withheld == 2
    assert told.hear(60) == ["jank"]
    assert told.notices[0].more.startswith("2 of this bug in the last 59.0 s")
    assert told.hear(61, HANG, lag(JANK, id="s1-jank-3")) == ["hang of 2.00 s"]
    told.desk.end()
    assert told.notices[-1].title.startswith("1 more issue until the end, ")


def test_only_the_kinds_that_are_asked_for_are_sent():
    told = Told(from_ns=0, kinds={IssueKind.IDLE})
    assert told.hear(0, HANG, *map(lag, ISSUES)) == [IDLE_LAG.title]
    told.desk.end()
    assert len(told.notices) == 1


def test_bugs_that_people_ignore_and_what_is_made_of_them_are_no_news():
    told = Told(from_ns=0)
    told.ignored = {HANG.fingerprint}
    jank = lag(JANK, stalls=(HANG.id,))
    assert told.hear(0, HANG, jank, replace(HANG, id="s1-2", fingerprint="2:other")) == ["hang of 2.00 s"]
    assert told.hear(1, lag(JANK, id="s1-jank-2", stalls=(HANG.id, "s1-other"))) == ["jank"]


# ---- notifier ---------------------------------------------------------------------------------


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with receiver() as made:
        monkeypatch.setenv("LOOPCANARY_WEBHOOK_URL", made.url)
        yield made


def notifier(store: Path) -> Notifier:
    made = Notifier(store, set, PythonThread)
    made.ask(Config(notify=("bell", "webhook")), pytest.fail)
    return made


def test_what_is_heard_is_sent_and_the_status_says_so(there: Receiver, tmp_path: Path):
    made = notifier(tmp_path)
    made.hear(HANG, SESSION)
    made.look(time.monotonic_ns())
    assert there.next()["text"].startswith("`hang of 2.00 s")
    made.end(280)
    status = read_status(tmp_path, "webhook")
    assert status is not None
    assert (status["pid"], status["sent"], status["lost"], status["problem"]) == (os.getpid(), 1, 0, None)


def test_the_first_that_asks_names_the_ways(there: Receiver, tmp_path: Path):
    made = notifier(tmp_path)
    made.ask(Config(notify=("desktop",), webhook_file="none"), pytest.fail)
    made.end(280)
    made.hear(HANG, SESSION)
    made.look(time.monotonic_ns())
    assert there.posts.empty(), "it has ended"


def test_a_way_that_cannot_be_used_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("LOOPCANARY_WEBHOOK_URL", raising=False)
    said: list[str] = []
    made = Notifier(tmp_path, set, PythonThread)
    made.ask(Config(notify=("webhook",)), said.append)
    made.hear(HANG, SESSION)
    assert made.look(time.monotonic_ns()) is None
    [line] = said
    assert line.startswith("webhook: no address is set")
    assert not (tmp_path / FOLDER).exists()


def test_what_was_over_an_hour_ago_is_no_news(there: Receiver, tmp_path: Path):
    made = notifier(tmp_path)
    made.hear_all([replace(HANG, id="old", began_wall_ns=NOW - 2 * 3_600 * S), HANG], [SESSION])
    made.end(280)
    there.next()
    assert there.posts.empty()


@pytest.mark.parametrize(("ends_well", "sent"), [(True, 0), (False, 1)])
def test_a_later_keeper_sends_what_a_killed_one_may_not_have_sent(
    there: Receiver, tmp_path: Path, ends_well: bool, sent: int
):
    first = notifier(tmp_path)
    if ends_well:
        first.end(280)
    later = notifier(tmp_path)
    later.reporter(lambda: SESSION).recall(replace(HANG, began_wall_ns=time.time_ns() - 5 * S))
    later.end(280)
    first.end(280)
    assert there.posts.qsize() == sent


# ---- status -----------------------------------------------------------------------------------


def test_a_status_is_what_was_written_last_or_none(tmp_path: Path):
    assert read_status(tmp_path, "webhook") is None
    write_status(tmp_path, "webhook", {"sent": 1})
    write_status(tmp_path, "webhook", {"sent": 2})
    assert read_status(tmp_path, "webhook") == {"sent": 2}
    assert [path.name for path in (tmp_path / FOLDER).iterdir()] == ["webhook.json"]
    for damaged in ("[1]", "{", "\x00"):
        status_path(tmp_path, "webhook").write_text(damaged)
        assert read_status(tmp_path, "webhook") is None
