"""The pages of starts and of slow methods."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from tests.building.anything import any_of
from tests.building.issues import FINDING, SLOW_METHOD, START_IN_TIME, STARTUP
from tests.building.stalls import BEGAN, HOSTILE, MS, STALL, S, frame
from tests.ui.conftest import client_of, let_in
from tests.ui.test_http import checked

from loopcanary.model import CallRow, FoundAt, Issue, IssueKind, Phase, PhaseKind, SlowMethod, Startup
from loopcanary.model.calls import TracedCall, TracedCalls, TracedWork
from loopcanary.model.search import IssueQuery
from loopcanary.store import Retention, Store
from loopcanary.ui.pages.flame import DEPTH_MAX
from loopcanary.ui.pages.methods import ROWS as METHODS
from loopcanary.ui.pages.methods import methods_page
from loopcanary.ui.pages.startups import ROWS as STARTS
from loopcanary.ui.pages.startups import startup_page
from loopcanary.ui.pages.trees import Branch, by_function, merged, merged_work, tree_of
from loopcanary.ui.sources import as_one


def all_of(rows: tuple[Branch, ...]) -> list[Branch]:
    return [one for row in rows for one in (row, *all_of(row.inside))]


def branches(issue: Issue) -> tuple[Branch, ...]:
    tree = tree_of(issue)
    return () if tree is None else tree.branches


def test_a_start_is_a_tree_on_one_axis_of_time():
    outer = branches(STARTUP)
    assert [one.words for one in outer] == [
        "interpreter start",
        "site",
        "until the application is ready",
        "warm the cache",
    ]
    [shop] = outer[2].inside
    [pandas] = shop.inside
    assert (pandas.words, pandas.begin_share, pandas.share, pandas.is_key) == (
        "import pandas",
        4 / 12,
        6 / 12,
        True,
    )
    assert [one.is_key for one in all_of(outer)].count(True) == 1
    tree = tree_of(STARTUP)
    assert tree is not None
    assert (tree.length_ns, tree.ticks[1]) == (12 * S, (pytest.approx(100 / 6), "2.00 s"))


def test_imports_of_loopcanary_are_folded():
    long = {"offset_ns": 0, "duration_ns": 800 * MS, "self_ns": 400 * MS}
    phases = [
        Phase(kind=PhaseKind.IMPORT, name=name, **long) for name in ("shop", "loopcanary", "loopcanary.ui")
    ]
    rows = branches(replace(STARTUP, phases=tuple(phases), duration_ns=800 * MS))
    assert [row.is_open for row in rows] == [True, False, False]


def test_a_slow_method_is_a_tree_with_shares():
    [dispatch] = branches(SLOW_METHOD)
    words = [one.words for one in all_of((dispatch,))]
    assert words == ["_run", "handle", "Orders.load_orders", "parse"]
    key = dispatch.inside[0].inside[0]
    assert (key.is_key, key.count, round(key.share, 3), key.self_share) == (True, 40, 0.917, 0.75)
    assert (dispatch.in_app, key.in_app) == (False, True)


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=50, deadline=None)
@given(start=any_of(Startup), slow=any_of(SlowMethod))
def test_any_tree_has_each_of_its_rows_once(start: Startup, slow: SlowMethod):
    assert len(all_of(branches(start))) == len(start.phases)
    found = all_of(branches(slow))
    assert sorted(one.total_ns for one in found) == sorted(row.total_ns for row in slow.rows)
    assert all(0 <= one.share <= 1 and 0 <= one.self_share <= 1 for one in found)


def test_a_tree_without_an_end_is_shown_to_its_bounds(store: Store):
    rows = tuple(
        CallRow(frame=frame(f"level{n}", "/srv/a.py", n), depth=n, total_ns=MS, self_ns=0)
        for n in range(2_000)
    )
    store.put_issue(replace(SLOW_METHOD, rows=rows))
    text = let_in(client_of(store)).get("/issue", params={"id": SLOW_METHOD.id}).text
    checked(text)
    tree = text.partition('<ul class="tree">')[2].partition('<p class="quiet">')[0]
    assert tree.count('class="leaf"') + tree.count("<summary>") == 200


def test_starts_are_listed_latest_first_by_pages(store: Store):
    count = 2 * STARTS + 7
    for number in range(count):
        store.put_issue(replace(STARTUP, id=f"n{number}", began_wall_ns=BEGAN + number * S))
    first = startup_page(store.reader)
    assert (first.total, len(first.rows), first.is_first) == (count, STARTS, True)
    seen, page = list(first.rows), first
    while page.earlier is not None:
        page = startup_page(store.reader, page.earlier)
        assert not page.is_first
        seen += page.rows
    assert [one.id for one in seen] == [f"n{number}" for number in reversed(range(count))]


def test_starts_are_drawn_by_program_with_their_limits(store: Store):
    starts = [
        STARTUP,
        replace(START_IN_TIME, program="worker", id="w1"),
        replace(STARTUP, id="late", began_wall_ns=BEGAN + 90 * S, threshold_ns=1 << 60),
    ]
    for start in starts:
        store.put_issue(start)
    shop, worker = startup_page(store.reader).courses
    assert (shop.program, worker.program) == ("shop", "worker")
    assert [bar.start.id for bar in shop.bars] == [STARTUP.id, "late"]
    assert [bar.limit_y is None for bar in shop.bars] == [False, True]
    assert (shop.slow, worker.slow) == (1, 0)
    assert all(one.x < other.x for one, other in pairwise(shop.bars))
    assert {bar.width for bar in (*shop.bars, *worker.bars)} == {8.0}
    assert shop.ticks[0] == (60.0, 0)
    assert shop.bars[0].y < shop.ticks[1][0] < 60


def test_methods_are_listed_by_total_time_by_pages(store: Store):
    for number in range(METHODS + 3):
        slow = replace(SLOW_METHOD, id=f"m{number}", fingerprint=f"slow-method:{number}")
        store.put_issue(replace(slow, duration_ns=SLOW_METHOD.duration_ns + number * MS))
    first, second = methods_page(store.reader), methods_page(store.reader, 2)
    assert (first.groups, first.count, first.pages) == (METHODS + 3, METHODS + 3, 2)
    assert [row.rank for row in (*first.rows, *second.rows)] == list(range(1, METHODS + 4))
    assert [row.group.worst_id for row in second.rows] == ["m2", "m1", "m0"]
    assert methods_page(store.reader, 99).page == 2


def test_the_page_of_either_has_its_limit_and_its_tree(filled: Store):
    filled.put_issue(START_IN_TIME)
    client = let_in(client_of(filled))
    start = client.get("/issue", params={"id": START_IN_TIME.id}).text
    assert "within the limit" in start
    assert "The bar shows when it ran" in start
    method = client.get("/issue", params={"id": SLOW_METHOD.id}).text
    assert "within the limit" not in method
    assert "92 %" in method
    assert "The bar is the share of the time" in method


def test_what_a_tree_leaves_out_is_counted(filled: Store):
    filled.put_issue(replace(SLOW_METHOD, left_out=1_200, left_out_ns=3 * MS))
    text = let_in(client_of(filled)).get("/issue", params={"id": SLOW_METHOD.id}).text
    assert "and 1,200 short rows, 3.00 ms by themselves." in text


@pytest.mark.parametrize("path", ["/startup", "/methods"])
def test_without_any_the_page_says_how_to_record_them(store: Store, path: str):
    text = let_in(client_of(store)).get(path).text
    checked(text)
    assert "<code>loopcanary run --" in text


@pytest.mark.parametrize(
    "path",
    [
        "/startup?before=1",
        "/startup?before=-99999999999999999999",
        "/startup?before=x",
        "/startup?before=%00",
        "/methods?page=0",
        "/methods?page=99999999",
        "/methods?page=%3Cscript%3E",
    ],
)
def test_addresses_that_ask_for_nonsense_get_a_page(filled: Store, path: str):
    answer = let_in(client_of(filled)).get(path)
    assert answer.status_code == 200
    checked(answer.text)


def test_several_stores_are_one(filled: Store, tmp_path):
    other = Store(tmp_path / "other", retention=Retention(age_ns=1 << 62))
    other.put_issue(replace(START_IN_TIME, id="theirs"))
    source = as_one([filled.reader, other.reader])
    page = startup_page(source)
    assert [one.id for one in page.rows] == ["theirs", STARTUP.id]
    assert page.total == 2
    assert source.totals(IssueQuery(kind=IssueKind.STARTUP)).issues == 2
    other.close()


@pytest.mark.parametrize("text", ["select 1", *HOSTILE[:-1]])
def test_a_finding_has_a_page_with_its_statement(store: Store, text: str):
    at = FoundAt(file=text, database=text, table=text, sql=text, owner=text, chain=(text,), said=(text,))
    store.put_issue(replace(FINDING, at=at))
    answer = let_in(client_of(store)).get("/issue", params={"id": FINDING.id})
    assert answer.status_code == 200
    checked(answer.text)
    assert "held by, from the root on" in answer.text
    assert text != "select 1" or text in answer.text


# ---- by function -------------------------------------------------------------------------------


def call(name: str, depth: int, total_ns: int, self_ns: int, calls: int = 1) -> TracedCall:
    return TracedCall(
        frame=frame(name, "/srv/a.py", 1), depth=depth, calls=calls, total_ns=total_ns, self_ns=self_ns
    )


def test_a_function_is_one_row_by_whatever_path():
    calls = (
        call("main", 0, 100, 10),
        call("load", 1, 60, 10, calls=2),
        call("none", 2, 0, 0),
        call("parse", 2, 50, 50, calls=7),
        call("parse", 1, 30, 30, calls=3),
    )
    tree = tree_of(replace(STALL, duration_ns=200, calls=TracedCalls(rows=calls)))
    assert tree is not None
    assert [(one.words, one.count, one.total_ns, one.self_ns, one.share) for one in tree.functions] == [
        ("parse", 10, 80, 80, 0.4),
        ("main", 1, 100, 10, 0.05),
        ("load", 2, 60, 10, 0.05),
    ]


def test_time_inside_the_function_itself_counts_once():
    calls = [call("fib", 0, 100, 20), call("add", 1, 70, 10), call("fib", 2, 60, 60), call("fib", 0, 9, 9)]
    assert [(one.frame.qualname, one.calls, one.total_ns, one.self_ns) for one in by_function(calls)] == [
        ("fib", 3, 109, 89),
        ("add", 1, 70, 10),
    ]


def test_functions_that_are_not_shown_are_counted():
    calls = tuple(call(f"f{number}", 0, 10, 10) for number in range(23))
    tree = tree_of(replace(STALL, calls=TracedCalls(rows=calls)))
    assert tree is not None
    assert (len(tree.functions), tree.functions_left_out) == (20, "and 3 functions, 30 ns by themselves")


# ---- put together ------------------------------------------------------------------------------


def test_trees_become_one_by_path():
    first = [call("main", 0, 100, 40), call("load", 1, 20, 20), call("parse", 1, 40, 40, calls=7)]
    other = [
        call("other", 0, 5, 5),
        call("main", 0, 50, 10),
        call("load", 1, 40, 30),
        call("parse", 2, 10, 10),
    ]
    assert merged([first, other]) == [
        call("main", 0, 150, 50, calls=2),
        call("load", 1, 60, 50, calls=2),
        call("parse", 2, 10, 10),
        call("parse", 1, 40, 40, calls=7),
        call("other", 0, 5, 5),
    ]


def test_tasks_and_callbacks_of_several_become_one_list():
    def work(name: str, task: str | None, times: int, total_ns: int) -> TracedWork:
        return TracedWork(name=name, task=task, times=times, total_ns=total_ns)

    found = merged_work(
        [
            [work("a", None, 2, 30), work("a", "north", 1, 10)],
            [work("b", None, 1, 35), work("a", None, 1, 20)],
        ]
    )
    assert found == [work("a", None, 3, 50), work("b", None, 1, 35), work("a", "north", 1, 10)]
    slow = replace(SLOW_METHOD, duration_ns=100, work=tuple(found))
    tree = tree_of(slow)
    assert tree is not None
    assert [(row.words, row.count, row.share) for row in tree.work] == [
        ("a", 3, 0.5),
        ("b", 1, 0.35),
        ("a (task north)", 1, 0.1),
    ]


def test_the_page_puts_the_latest_slow_methods_together(store: Store):
    for number in range(3):
        store.put_issue(replace(SLOW_METHOD, id=f"m{number}", fingerprint=f"m:{number}"))
    tree = methods_page(store.reader).tree
    assert tree is not None
    assert tree.length_ns == 3 * SLOW_METHOD.duration_ns
    assert [(one.words, one.count) for one in tree.functions[:2]] == [
        ("Orders.load_orders", 120),
        ("parse", 27_000),
    ]
    assert tree.left_out == "and 9 short rows"
    text = let_in(client_of(store)).get("/methods").text
    checked(text)
    assert "in all of them, merged" in text


# ---- the flame graph of exact calls ------------------------------------------------------------


def traced(*calls: tuple[int, int, int], duration_ns: int = 100) -> dict[str, Any]:
    """The graph of a stall with calls of (depth, ns, count)."""
    rows = tuple(
        TracedCall(
            frame=frame(f"f{number}", "/srv/a.py", 1), depth=depth, calls=count, total_ns=ns, self_ns=ns
        )
        for number, (depth, ns, count) in enumerate(calls)
    )
    tree = tree_of(replace(STALL, duration_ns=duration_ns, calls=TracedCalls(rows=rows)))
    assert tree is not None
    assert tree.flame is not None
    return tree.flame


def told(node: dict[str, Any]) -> tuple[str, int, int, list[Any]]:
    return node["name"], node["value"], node.get("calls", 0), [told(one) for one in node["children"]]


def test_traced_calls_are_a_flame_graph_with_counts():
    assert told(traced((0, 90, 1), (1, 60, 3), (2, 50, 6_000), (1, 20, 2))) == (
        "stalled time",
        100,
        0,
        [("f0", 90, 1, [("f1", 60, 3, [("f2", 50, 6_000, [])]), ("f3", 20, 2, [])])],
    )


def test_no_frame_of_the_graph_is_wider_than_the_one_around_it():
    assert told(traced((0, 90, 1), (1, 200, 1), (1, 5, 1))) == (
        "stalled time",
        100,
        0,
        [("f0", 90, 1, [("f1", 90, 1, [])])],
    )


def test_calls_of_a_killed_process_make_the_graph_longer():
    name, value, _, _ = told(traced((0, 130, 1)))
    assert (name, value) == ("stalled time", 130)


def test_a_very_deep_graph_ends():
    node, depth = traced(*((level, 100, 1) for level in range(2_000))), 0
    while node["children"]:
        [node] = node["children"]
        depth += 1
    assert depth == DEPTH_MAX


def test_a_slow_method_has_a_graph_too():
    tree = tree_of(SLOW_METHOD)
    assert tree is not None
    assert tree.flame is not None
    assert [one["name"] for one in tree.flame["children"]] == ["_run"]


def test_a_start_has_no_graph_of_calls():
    tree = tree_of(STARTUP)
    assert tree is not None
    assert tree.flame is None
