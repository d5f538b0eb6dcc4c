from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from tests.building.stalls import BEGAN, HOSTILE, SESSION, S, session, stall

from loopcanary.model import Cause, StallState
from loopcanary.model.search import STALLS, IssueQuery, Remark
from loopcanary.store import Store
from loopcanary.store import grouping as grouping_module

CAUSES = (Cause.CPU, Cause.LOCK, Cause.SLEEP)


@pytest.fixture
def full(store: Store) -> Store:
    """Some 100 stalls of 7 bugs over 100 s."""
    store.put(
        [SESSION],
        [
            stall(
                id=f"s1-{number}",
                fingerprint=f"1:{number * number % 7}",
                cause=CAUSES[number % 3],
                began_wall_ns=BEGAN + number * S,
                duration_ns=(number * 7919 % 500 + 100) * 1_000_000,
                scene=("shop", "cart", None)[number % 3],
            )
            for number in range(100)
        ],
    )
    return store


def test_groups_are_the_same_by_index_and_by_scan(full: Store, monkeypatch: pytest.MonkeyPatch):
    by_index = full.reader.groups(STALLS)
    monkeypatch.setattr(grouping_module, "_is_by_index", lambda _: False)
    by_scan = full.reader.groups(STALLS)
    assert len(by_index) > 3
    assert by_index == by_scan
    assert full.reader.groups(STALLS, 2) == by_index[:2]


@pytest.mark.parametrize("is_by_index", [True, False])
def test_a_crash_comes_first_and_adds_no_time(
    full: Store, monkeypatch: pytest.MonkeyPatch, is_by_index: bool
):
    monkeypatch.setattr(grouping_module, "_is_by_index", lambda _: is_by_index)
    before = full.reader.totals(STALLS)
    crash = stall(id="s1-crash", fingerprint="1:crash", cause=Cause.CRASH, state=StallState.CRASHED)
    full.put([], [crash])
    first = full.reader.groups(STALLS, 1)[0]
    assert (first.fingerprint, first.count, first.total_ns, first.max_ns) == ("1:crash", 1, 0, 0)
    assert full.reader.group_sums(STALLS)[0].fingerprint == "1:crash"
    after = full.reader.totals(STALLS)
    assert (after.issues, after.total_ns) == (before.issues + 1, before.total_ns)
    kept = full.reader.issue("s1-crash")
    assert kept is not None
    assert kept.duration_ns == crash.duration_ns


@pytest.mark.parametrize("is_by_index", [True, False])
def test_cells_add_up_to_the_groups(full: Store, monkeypatch: pytest.MonkeyPatch, is_by_index: bool):
    monkeypatch.setattr(grouping_module, "_is_by_index", lambda _: is_by_index)
    groups = {group.fingerprint: group for group in full.reader.groups(STALLS)}
    cells = full.reader.time_cells(
        STALLS, "fingerprint", begin_wall_ns=BEGAN, step_ns=10 * S, cells=10, keys=list(groups)
    )
    sums: Counter[str] = Counter()
    for cell in cells:
        assert 0 <= cell.cell < 10
        sums[cell.key] += cell.total_ns
    assert sums == {fingerprint: group.total_ns for fingerprint, group in groups.items()}


@pytest.mark.parametrize("is_by_index", [True, False])
@pytest.mark.parametrize("key", ["fingerprint", "cause"])
def test_a_long_issue_is_in_all_cells_that_it_lasts_in(
    make_store: Callable[..., Store], monkeypatch: pytest.MonkeyPatch, key: Any, is_by_index: bool
):
    monkeypatch.setattr(grouping_module, "_is_by_index", lambda _: is_by_index)
    store = make_store()
    hang = stall(id="s1-hang", began_wall_ns=BEGAN + 15 * S, duration_ns=20 * S)
    store.put([], [hang, stall(id="s1-short", began_wall_ns=BEGAN + 16 * S, duration_ns=S)])
    keys = {"fingerprint": hang.fingerprint, "cause": hang.cause.value}
    cells = store.reader.time_cells(
        STALLS, key, begin_wall_ns=BEGAN, step_ns=10 * S, cells=4, keys=[keys[key]]
    )
    times, begun = Counter[int](), Counter[int]()
    for cell in cells:
        times[cell.cell] += cell.total_ns
        begun[cell.cell] += cell.issues
    assert times == {1: 6 * S, 2: 10 * S, 3: 5 * S}
    assert +begun == {1: 2}
    assert store.reader.totals(STALLS).end_wall_ns == BEGAN + 35 * S


def test_cells_outside_of_the_time_are_left_out(full: Store):
    cells = full.reader.time_cells(STALLS, "cause", begin_wall_ns=BEGAN + 50 * S, step_ns=10 * S, cells=2)
    assert sum(cell.issues for cell in cells) == 20
    assert {cell.cell for cell in cells} == {0, 1}


def test_scenes_and_own_code_are_asked_for(full: Store):
    assert full.reader.scenes() == ["cart", "shop"]
    assert full.reader.totals(IssueQuery(scene="shop").stalls).issues == 34
    assert full.reader.totals(IssueQuery(scene="").stalls).issues == 33
    assert full.reader.totals(IssueQuery(in_app=True).stalls).issues == 100
    assert full.reader.totals(IssueQuery(in_app=False).stalls).issues == 0
    full.put([], [stall(id="s1-none", culprit=None)])
    assert full.reader.totals(IssueQuery(in_app=False).stalls).issues == 0


def test_what_goes_on_is_grouped_with_what_is_stored(full: Store):
    going_on = stall(id="s1-3", fingerprint="1:2", began_wall_ns=BEGAN + 3 * S, duration_ns=90 * S)
    before = {group.fingerprint: group for group in full.reader.groups(STALLS)}
    full.overlay([session()], [going_on])
    [top] = full.reader.groups(STALLS, 1)
    assert (top.fingerprint, top.max_ns, top.worst_id) == ("1:2", 90 * S, "s1-3")
    assert top.count == before["1:2"].count
    cells = full.reader.time_cells(
        STALLS, "fingerprint", begin_wall_ns=BEGAN, step_ns=100 * S, cells=1, keys=["1:2"]
    )
    assert [(cell.issues, cell.total_ns) for cell in cells] == [(top.count, top.total_ns)]
    full.overlay([], [])
    assert {group.fingerprint: group for group in full.reader.groups(STALLS)} == before


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_remarks_are_kept_and_taken_back(make_store: Callable[..., Store], text: str):
    store = make_store()
    store.remark(text, Remark(ignored=True, note=text))
    [(fingerprint, remark)] = store.reader.remarks().items()
    assert remark.ignored
    store.remark(text, Remark(note="better"))
    assert store.reader.remarks() == {fingerprint: Remark(note="better")}
    store.remark(text, Remark())
    assert store.reader.remarks() == {}
