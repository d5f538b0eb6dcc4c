"""One record that cannot be read is left out, and hides nothing else."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.building.stalls import BEGAN, SESSION, STALL, S, stall

from loopcanary.model.search import STALLS, IssueQuery
from loopcanary.store import Store, grouping

ALL = IssueQuery()
SOUND = [stall(id=f"s1-{i}", began_wall_ns=BEGAN + i * S) for i in range(1, 4)]
BAD = stall(id="s1-9", began_wall_ns=BEGAN + 9 * S, duration_ns=STALL.duration_ns * 9)
"""The latest and the longest of its bug: its title would be the bug's."""

DAMAGE = {
    "no JSON": "replace(payload, '{', '<')",
    "no UTF-8": "CAST(X'7bff' AS TEXT)",
    "a newer version's": "replace(payload, '\"duration_ms\"', '\"lasted_ms\"')",
    "another kind's": "replace(payload, '\"stall\"', '\"spall\"')",
}


def damage(store: Store, table: str, change: str, condition: str) -> None:
    store.close()
    connection = sqlite3.connect(store.path)
    with connection:
        connection.execute(f"UPDATE {table} SET payload = {change} WHERE {condition}")
    connection.close()


@pytest.fixture(params=DAMAGE.values(), ids=DAMAGE)
def damaged(request: pytest.FixtureRequest, store: Store) -> Store:
    store.put([SESSION], [*SOUND, BAD])
    damage(store, "payloads", request.param, "row = (SELECT row FROM issues WHERE id = 's1-9')")
    return store


QUESTIONS: dict[str, Callable[[Store], object]] = {
    "issues": lambda store: store.reader.issues(ALL),
    "the latest": lambda store: store.reader.issues(ALL, 1),
    "each": lambda store: list(store.reader.each(ALL)),
    "groups": lambda store: store.reader.groups(STALLS),
    "by id": lambda store: store.reader.issue(BAD.id),
}


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)
def test_it_is_left_out_of_every_answer(damaged: Store, ask: Callable[[Store], object]) -> None:
    ask(damaged)
    assert damaged.reader.issues(ALL, 9) == SOUND[::-1]
    assert damaged.reader.issues(ALL, 1) == SOUND[-1:]
    assert list(damaged.reader.each(ALL)) == SOUND
    [group] = damaged.reader.groups(STALLS)
    assert (group.count, group.worst_id, group.title) == (3, "s1-3", STALL.title)
    assert damaged.reader.totals(STALLS).issues == 3
    assert damaged.reader.issue(BAD.id) is None


def test_one_line_says_which_and_how_to_remove_it(damaged: Store) -> None:
    assert damaged.notices == []
    damaged.reader.issues(ALL)
    damaged.reader.groups(ALL)
    [line] = damaged.notices
    assert line.startswith("1 record cannot be read and is left out (")
    assert f"`loopcanary clean --id s1-9 --store {damaged.folder}`" in line
    assert damaged.maintenance.delete_records([BAD.id]) == 1
    assert damaged.reader.issues(ALL) == SOUND[::-1]


def test_a_store_that_may_only_be_read_is_answered_too(
    damaged: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loopcanary.store.sqlite.database.is_writable", lambda _: False)
    assert damaged.reader.issues(ALL) == SOUND[::-1]
    assert len(damaged.reader.groups(ALL)) == 1


def test_many_are_met_in_few_readings(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put([], [stall(id=f"s1-{i}", fingerprint=f"2:{i:012x}") for i in range(300)])
    damage(store, "payloads", "'{}'", "row <> 1")
    readings: list[object] = []
    groups = grouping.groups

    def counted(*arguments: object) -> object:
        readings.append(arguments)
        return groups(*arguments)

    monkeypatch.setattr("loopcanary.store.grouping.groups", counted)
    assert len(store.reader.groups(ALL)) == 1
    assert len(readings) < 20
    numbers = [int(line.partition(" ")[0]) for line in store.notices]
    assert sum(numbers) == 299


def test_a_damaged_run_hides_no_other(store: Store) -> None:
    store.put([SESSION, replace(SESSION, id="s2")], [STALL])
    damage(store, "sessions", "'{}'", "id = 's2'")
    assert store.reader.sessions(ALL) == [SESSION]
    [line] = store.notices
    assert "--id s2" in line


def test_what_runs_now_is_shown_all_the_same(damaged: Store) -> None:
    damaged.reader.issues(ALL)
    live = stall(id="s1-10", began_wall_ns=BEGAN + 10 * S)
    damaged.overlay([], [live])
    assert damaged.reader.issues(ALL) == [live, *SOUND[::-1]]
