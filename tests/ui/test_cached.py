"""Answers that are kept until the store changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.building.issues import ISSUES
from tests.building.stalls import BEGAN, SESSION, STALL, S, stall

from loopcanary.model.search import OTHERS, STALLS, IssueQuery, Remark
from loopcanary.store import Retention, Store
from loopcanary.ui.cached import cached
from loopcanary.ui.pages.groups import Filters, groups_page
from loopcanary.ui.sources import as_one

ALL = IssueQuery()
SPAN: dict[str, Any] = {"begin_wall_ns": BEGAN, "step_ns": 3_600 * S, "cells": 2}
ASKED: dict[str, Callable[[Any], Any]] = {
    "totals": lambda source: source.totals(STALLS).total_ns,
    "group_sums": lambda source: source.group_sums(STALLS),
    "groups": lambda source: source.groups(STALLS, 5),
    "some groups": lambda source: source.groups(STALLS, 0, [STALL.fingerprint]),
    "issue_totals": lambda source: source.totals(OTHERS).issues,
    "issue_groups": lambda source: source.groups(OTHERS),
    "marks": lambda source: sorted(source.marks(STALLS)),
    "marks of a bug": lambda source: sorted(source.marks(STALLS, [STALL.fingerprint])),
    "times": lambda source: sorted(source.times(STALLS)),
    "times of a session": lambda source: sorted(source.times(STALLS, [SESSION.id])),
    "session_marks": lambda source: source.session_marks(ALL),
    "time_cells": lambda source: sorted(source.time_cells(STALLS, "cause", **SPAN)),
    "cells of a bug": lambda source: source.time_cells(
        STALLS, "fingerprint", keys=[STALL.fingerprint], **SPAN
    ),
    **{
        f"{what} with {word}": lambda source, ask=ask, words=(word,): ask(source, IssueQuery(words=words))
        for word in ("orders", "task-17", "nothing has this")
        for what, ask in {
            "groups": lambda source, query: source.groups(query, 5),
            "all groups": lambda source, query: source.groups(query),
            "a bug": lambda source, query: source.groups(query, 0, [STALL.fingerprint]),
            "cells": lambda source, query: sorted(
                source.time_cells(query, "fingerprint", keys=[STALL.fingerprint, "1:dead"], **SPAN)
            ),
        }.items()
    },
    "scenes": lambda source: source.scenes(),
    "remarks": lambda source: source.remarks(),
}


class Counting:
    """A store, and how often it is asked for anything but its state."""

    def __init__(self, store: Store) -> None:
        self._reader = store.reader
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        answer = getattr(self._reader, name)

        def counted(*arguments: Any, **named: Any) -> Any:
            self.asked += 1
            return answer(*arguments, **named)

        return answer if name == "state" else counted


def answers(source: Any) -> dict[str, Any]:
    return {name: ask(source) for name, ask in ASKED.items()}


def test_it_answers_as_the_store_does_after_every_change(filled: Store):
    kept = cached(filled.reader)
    other = Store(filled.folder, retention=Retention(age_ns=1 << 62))
    changes: list[Callable[[], object]] = [
        lambda: None,
        lambda: filled.put([], [stall(id="s1-7", scene="new")]),
        lambda: other.put([], [stall(id="s1-8", fingerprint="1:else")]),
        lambda: other.put([], [stall(id="s1-6", task="another")]),
        lambda: other.put_issue(ISSUES[0]),
        lambda: filled.remark("1:f00d", Remark(note="mine")),
        lambda: filled.overlay([], [stall(id="live", duration_ns=60 * S)]),
        lambda: filled.overlay([], []),
        lambda: filled.maintenance.delete(IssueQuery(fingerprint="1:dead")),
    ]
    for change in changes:
        change()
        assert answers(kept) == answers(kept) == answers(filled.reader)
    other.close()


def test_the_same_is_asked_once(filled: Store):
    counting = Counting(filled)
    kept = cached(counting)
    first = answers(kept)
    asked = counting.asked
    assert answers(kept) == first
    assert counting.asked == asked
    filled.put([SESSION], [stall(id="s1-9")])
    assert answers(kept) != first
    assert counting.asked == 2 * asked


def test_a_page_seen_again_asks_the_store_for_nothing(filled: Store):
    counting = Counting(filled)
    kept = cached(counting)
    page = groups_page(kept, Filters())
    asked = counting.asked
    assert groups_page(kept, Filters()) == page
    assert counting.asked == asked


def test_only_the_pages_bugs_are_read_in_full(filled: Store, tmp_path):
    other = Store(tmp_path / "other", retention=Retention(age_ns=1 << 62))
    other.put([SESSION], [stall(id=f"o-{n}", fingerprint=f"1:{n:04}", duration_ns=S + n) for n in range(120)])
    asked: list[Any] = []

    class Watched(Counting):
        def groups(self, query: IssueQuery, limit: int = 0, fingerprints: Any = None) -> Any:
            asked.append(fingerprints)
            return self._reader.groups(query, limit, fingerprints)

    source = as_one([Watched(filled), Watched(other)])
    page = groups_page(source, Filters())
    assert len(page.rows) == 50
    assert page.groups == 122
    assert [len(names) for names in asked] == [50, 50]
    assert [row.group.total_ns for row in page.rows] == sorted(
        (row.group.total_ns for row in page.rows), reverse=True
    )
    other.close()
