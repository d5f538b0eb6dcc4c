"""What retention removes, with a program that has the store open meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.building.issues import JANK
from tests.building.stalls import BEGAN, SESSION, STALL, S
from tests.store.aging import AGE, DAY, young

from loopcanary.cli import main
from loopcanary.model import LagIssue, Stall
from loopcanary.model.search import OTHERS, STALLS, IssueQuery, Remark
from loopcanary.store import Retention, Store

ALL = IssueQuery()


def stalls(number: int) -> list[Stall]:
    return [replace(STALL, id=f"s1-{n}", began_wall_ns=BEGAN + n * S) for n in range(number)]


def issues(number: int) -> list[LagIssue]:
    return [replace(JANK, id=f"j-{n}", began_wall_ns=BEGAN + n * S) for n in range(number)]


def bytes_on_disk(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("loopcanary.db*") if path.suffix != ".db-shm")


def test_a_size_limit_removes_the_oldest_of_any_kind(make_store: Callable[..., Store], folder: Path) -> None:
    program = make_store()
    program.put([SESSION], stalls(150))
    for issue in issues(150):
        program.put_issue(issue)
    before = program.maintenance.used_bytes()
    limit = before // 3
    other = make_store(retention=Retention(age_ns=1 << 62, bytes=limit))
    assert other.maintenance.sweep() > 0
    assert other.maintenance.used_bytes() <= limit
    assert bytes_on_disk(folder) <= limit + 100_000
    left = [stall.began_wall_ns for stall in program.reader.each(STALLS)]
    kept = [issue.began_wall_ns for issue in program.reader.issues(OTHERS)]
    assert left
    assert kept
    # One clock for both: neither kind is kept longer than the other.
    assert abs(min(left) - min(kept)) <= 2 * S
    assert max(left) == max(kept) == BEGAN + 149 * S
    program.put([], [replace(STALL, id="new")])
    assert program.reader.issue("new") is not None


def test_issues_alone_are_bounded_by_bytes_too(make_store: Callable[..., Store]) -> None:
    limit = 200_000
    store = make_store(retention=Retention(age_ns=1 << 62, bytes=limit))
    for issue in issues(200):
        store.put_issue(issue)
    assert store.maintenance.used_bytes() > limit
    store.put_issue(replace(STALL, began_wall_ns=BEGAN + 999 * S))
    store.maintenance.sweep()
    assert store.maintenance.used_bytes() <= limit
    assert store.reader.issue(STALL.id) is not None


@pytest.mark.parametrize("rule", [Retention(age_ns=1), Retention(age_ns=1 << 62, stalls=0)])
def test_a_session_is_kept_as_long_as_anything_of_it(
    make_store: Callable[..., Store], rule: Retention
) -> None:
    store = make_store()
    store.put_session(SESSION)
    store.put_issue(replace(JANK, session=SESSION.id, began_wall_ns=1 << 61))
    sweeper = make_store(retention=replace(rule, stalls=max(rule.stalls, 1)))
    sweeper.maintenance.sweep()
    assert [session.id for session in store.reader.sessions(ALL)] == [SESSION.id]
    store.maintenance.delete_as_seen([(JANK.id, "ended")])
    make_store(retention=rule).maintenance.sweep()
    assert store.reader.sessions(ALL) == []


def test_what_was_said_of_a_bug_outlives_its_stalls(make_store: Callable[..., Store]) -> None:
    """It may come back."""
    store = make_store()
    store.put([SESSION], [STALL])
    store.remark(STALL.fingerprint, Remark(ignored=True, note="as designed"))
    make_store(retention=AGE).put_issue(young())
    assert [one.id for one in store.reader.issues(STALLS)] == ["young"]
    assert store.reader.remarks() == {STALL.fingerprint: Remark(ignored=True, note="as designed")}


def test_cleaning_by_size_age_number_and_bug(
    make_store: Callable[..., Store], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = make_store()
    store.put([SESSION], stalls(200))
    for issue in issues(200)[150:]:
        store.put_issue(issue)
    half = store.maintenance.used_bytes() // 2
    clean = ["clean", "--store", str(folder)]
    assert main([*clean, "--max-size", str(half)]) == 0
    assert store.maintenance.used_bytes() <= half
    left = store.reader.totals(STALLS).issues
    assert 0 < left < 200
    assert main([*clean, "--keep", "10"]) == 0
    assert store.reader.totals(STALLS).issues == 10
    assert main([*clean, "--bug", JANK.fingerprint]) == 0
    assert "Deleted 0 stalls and " in capsys.readouterr().out.splitlines()[-1]
    assert main([*clean, "--older-than", "1d"]) == 0
    assert store.reader.totals(STALLS).issues == 0
    assert main([*clean, "--max-size", "0"]) == 0
    assert bytes_on_disk(folder) < 200_000


NOW = BEGAN + 1_000 * DAY


@pytest.mark.parametrize(
    ("times", "now", "left"),
    [
        pytest.param([-40, -31, -29], 0, [-29], id="what is too old goes"),
        pytest.param([-31, -2, 0, 40], 40, [-2, 0, 40], id="the clock is 40 days ahead"),
        pytest.param([0, 40, 40.9], 40.9, [0, 40, 40.9], id="for less than a day"),
        pytest.param([0, 40, 41], 41, [40, 41], id="nothing was stored for 40 days"),
        pytest.param([0, 40, 80], 80, [40, 80], id="a program runs every 40 days"),
        pytest.param([0, 400], 0, [0, 400], id="the clock was ahead"),
        pytest.param([-18_000, -40, 0], 0, [-18_000, -40, 0], id="the clock was not set"),
        pytest.param([-18_000, -40, -20, 0], 0, [-18_000, -20, 0], id="the clock was not set yet"),
    ],
)
def test_a_wrong_clock_does_not_empty_the_store(
    make_store: Callable[..., Store],
    monkeypatch: pytest.MonkeyPatch,
    times: list[float],
    now: float,
    left: list[float],
) -> None:
    began = {number: NOW + int(number * DAY) for number in times}
    forever = make_store(retention=Retention(age_ns=1 << 62))
    forever.put([], [replace(STALL, id=str(number), began_wall_ns=at) for number, at in began.items()])
    monkeypatch.setattr("loopcanary.store.maintenance.time.time_ns", lambda: NOW + int(now * DAY))
    make_store(retention=Retention(age_ns=30 * DAY)).maintenance.sweep()
    assert sorted(stall.began_wall_ns for stall in forever.reader.each(STALLS)) == [
        began[one] for one in left
    ]
