from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.building.issues import ISSUES
from tests.building.stalls import BEGAN, CULPRIT, KILLED, MS, SESSION, STALL, S, frame, session, stall
from tests.ui.conftest import TOOLS, client_of, let_in

from loopcanary.model import (
    Cause,
    EarlierWork,
    Holder,
    SessionEnd,
    ShortWork,
    StackFrame,
    WeightedStack,
    WorkKind,
)
from loopcanary.model.search import OTHERS, STALLS, IssueQuery, Remark
from loopcanary.model.timeline import Activity, Doing, Pause, Span, Timeline
from loopcanary.store import Retention, Store
from loopcanary.ui.drawing import exact_scale, heat_map, level_of, round_scale, scatter, spark_bars
from loopcanary.ui.pages.bug import bug_page
from loopcanary.ui.pages.changes import changes_page
from loopcanary.ui.pages.code import code_view
from loopcanary.ui.pages.earlier import EarlierView, earlier_view
from loopcanary.ui.pages.flame import flame, holding_flame
from loopcanary.ui.pages.frames import frames_page
from loopcanary.ui.pages.groups import ROWS, Filters, groups_page
from loopcanary.ui.pages.issue import issue_page
from loopcanary.ui.pages.overview import overview_page
from loopcanary.ui.pages.sessions import session_page, sessions_page
from loopcanary.ui.pages.stall import sections
from loopcanary.ui.pages.timeline import timeline_view
from loopcanary.ui.sources import as_one, change_each

NOW = BEGAN + 600 * S
SHORT = ("turns", "callbacks", "busy_ns", "idle_ns")


@dataclass(frozen=True)
class Text:
    lines: tuple[str, ...]
    modified_wall_ns: int | None


LINES = (*(f"line {number}" for number in range(1, 87)), f"    {CULPRIT.source}", "after")


def reading(text: Text | None):
    return lambda file: text if file == CULPRIT.file else None


# ---- the culprit's line ----------------------------------------------------------------------


def test_the_line_has_neighbours_and_a_marked_call():
    view = code_view(CULPRIT, BEGAN, reading(Text(LINES, BEGAN - 1)))
    assert view.is_current
    assert [line.number for line in view.lines] == [82, 83, 84, 85, 86, 87, 88]
    [line] = [line for line in view.lines if line.is_culprit]
    assert (line.before, line.call, line.after) == (
        "    rows = [parse(row) for row in ",
        "json.loads(body",
        ")]",
    )


@pytest.mark.parametrize(
    "text",
    [
        None,
        Text(LINES, BEGAN + 1),
        Text(("# another line", *LINES), BEGAN - 1),
        Text(LINES[:80], BEGAN - 1),
    ],
    ids=["gone", "written since", "moved", "shorter"],
)
def test_a_changed_file_shows_only_the_stored_line(text: Text | None):
    view = code_view(CULPRIT, BEGAN, reading(text))
    assert not view.is_current
    assert [line.before + line.call + line.after for line in view.lines] == [CULPRIT.source]


def test_a_file_that_nothing_was_stored_of_is_not_read():
    """A store names files; it must not make this page show other files."""
    asked: list[str] = []
    view = code_view(dataclasses.replace(CULPRIT, source=None), BEGAN, asked.append)
    assert (view.lines, asked) == ((), [])


def test_a_file_is_not_trusted_without_its_session():
    assert not code_view(CULPRIT, None, reading(Text(LINES, BEGAN - 1))).is_current


# ---- lists -----------------------------------------------------------------------------------


def test_groups_are_ranked_with_their_share_and_course(filled: Store):
    page = groups_page(filled.reader, Filters())
    assert [(row.rank, row.group.fingerprint) for row in page.rows] == [(1, "1:dead"), (2, "1:f00d")]
    assert sum(row.share for row in page.rows) == pytest.approx(1)
    for row in page.rows:
        assert sum(row.spark) == row.group.total_ns


def test_ignored_groups_are_left_out_and_counted(filled: Store):
    filled.remark("1:dead", Remark(ignored=True))
    page = groups_page(filled.reader, Filters())
    assert [row.group.fingerprint for row in page.rows] == ["1:f00d"]
    assert page.ignored == 1
    assert len(groups_page(filled.reader, Filters(with_ignored=True)).rows) == 2


def test_ignored_bugs_are_counted_at_any_rank(store: Store):
    store.put(
        [SESSION], [stall(id=f"s1-{n}", fingerprint=f"1:{n:04}", duration_ns=10**9 - n) for n in range(105)]
    )
    for name in (*(f"1:{n:04}" for n in range(95, 105)), "1:gone"):
        store.remark(name, Remark(ignored=True))
    pages = [groups_page(store.reader, Filters(page=number)) for number in (1, 2)]
    assert [(len(page.rows), page.ignored, page.pages) for page in pages] == [(50, 10, 2), (45, 10, 2)]
    assert overview_page(store.reader, TOOLS, (), NOW).ignored == 10


def test_the_rank_of_a_bug_is_shown_where_it_is_known(store: Store):
    store.put(
        [SESSION], [stall(id=f"s1-{n}", fingerprint=f"1:{n:04}", duration_ns=10**9) for n in range(120)]
    )
    pages = [bug_page(store.reader, f"1:{n:04}", TOOLS, NOW) for n in (0, 99, 100)]
    assert [page and page.rank for page in pages] == [1, 100, None]


def test_a_long_list_has_pages(store: Store):
    store.put(
        [SESSION], [stall(id=f"s1-{n}", fingerprint=f"1:{n:04}", duration_ns=10**9 - n) for n in range(120)]
    )
    pages = [groups_page(store.reader, Filters(page=number)) for number in (1, 2, 3, 4)]
    assert [len(page.rows) for page in pages] == [ROWS, ROWS, 20, 0]
    assert {page.pages for page in pages} == {3}
    assert [row.rank for row in pages[2].rows] == list(range(101, 121))


def test_the_overview_has_the_worst_and_counts_kills(filled: Store):
    page = overview_page(filled.reader, TOOLS, (), NOW)
    assert page.top is not None
    assert page.top.row.group.fingerprint == "1:dead"
    assert (page.stalls, page.groups, page.killed, page.sessions) == (3, 2, 1, 1)
    assert page.chart is not None
    assert sum(one.total_ns for one in page.chart.causes) == page.total_ns
    assert all(sum(one.cells_ns) == one.total_ns for one in page.chart.causes)
    assert [row.scene.scene for row in page.scenes] == ["boss"]
    assert page.issues == len(ISSUES)


def test_an_ignored_bug_is_not_the_worst_one(filled: Store):
    filled.remark("1:dead", Remark(ignored=True))
    page = overview_page(filled.reader, TOOLS, (), NOW)
    assert page.top is not None
    assert page.top.row.group.fingerprint == "1:f00d"
    assert page.ignored == 1


def test_causes_beyond_the_first_are_put_together(store: Store):
    stalls = [
        stall(id=f"s1-{n}", cause=cause, fingerprint=f"1:{n}", began_wall_ns=BEGAN + n * S)
        for n, cause in enumerate(Cause)
    ]
    store.put([SESSION], stalls)
    chart = overview_page(store.reader, TOOLS, (), NOW).chart
    assert chart is not None
    assert len(chart.causes) == 7
    assert chart.causes[-1].cause == "other"
    assert sum(one.total_ns for one in chart.causes) == sum(one.duration_ns for one in stalls)


def test_the_chart_shows_how_much_of_each_second_was_stalled(store: Store):
    ran = session(started_wall_ns=BEGAN, ended_wall_ns=BEGAN + 10 * S)
    store.put([ran], [stall(began_wall_ns=BEGAN + 2 * S + 250 * MS, duration_ns=3 * S)])
    chart = overview_page(store.reader, TOOLS, (), NOW).chart
    assert chart is not None
    assert chart.scale.cells == 20
    [one] = chart.causes
    assert one.shares[-5:] == (0.0, 0.75, 1.0, 1.0, 0.25)
    assert one.total_ns == 3 * S


def test_no_cell_of_the_chart_is_stalled_by_more_than_all(store: Store):
    both = [stall(id=f"s1-{n}", thread=f"loop {n}", began_wall_ns=BEGAN, duration_ns=2 * S) for n in range(2)]
    store.put([session(started_wall_ns=BEGAN, ended_wall_ns=BEGAN + 2 * S)], both)
    chart = overview_page(store.reader, TOOLS, (), NOW).chart
    assert chart is not None
    assert max(chart.causes[0].shares) == 1.0


def test_a_cause_that_is_left_alone_is_named(store: Store):
    causes = list(Cause)[:7]
    store.put([SESSION], [stall(id=f"s1-{cause}", cause=cause, fingerprint=f"1:{cause}") for cause in causes])
    chart = overview_page(store.reader, TOOLS, (), NOW).chart
    assert chart is not None
    assert {one.cause for one in chart.causes} == {cause.value for cause in causes}


# ---- one of each -----------------------------------------------------------------------------


def test_a_bug_has_its_longest_stall_reasons_and_stacks(filled: Store):
    page = bug_page(filled.reader, "1:f00d", TOOLS, NOW)
    assert page is not None
    assert page.worst is not None
    assert page.worst.id == "s1-3"
    assert page.grouped_by == (("blocker", "1:f00d"),)
    assert (page.rank, page.flame.stalls) == (2, 2)
    assert [one.id for one in page.latest] == ["s1-3", "s1-1"]
    assert bug_page(filled.reader, "none", TOOLS, NOW) is None


def test_stalls_of_one_bug_are_beside_each_other(store: Store):
    stalls = [stall(id=f"s1-{n}", began_wall_ns=BEGAN + n * S) for n in range(3)]
    store.put([SESSION], stalls)
    pages = [issue_page(store.reader, f"s1-{n}", TOOLS) for n in range(3)]
    assert [(page.older, page.newer) for page in pages if page] == [
        (None, "s1-1"),
        ("s1-0", "s1-2"),
        ("s1-1", None),
    ]


def test_stacks_are_folded_to_own_code_and_kept_whole(filled: Store):
    page = issue_page(filled.reader, "s1-1", TOOLS)
    assert page is not None
    assert len(page.stacks[0].rows) < len(page.stacks[0].frames)
    assert page.stacks[0].share == pytest.approx(390 / 412.345678)


def test_sessions_tell_how_they_ended(filled: Store):
    filled.put_session(session(id="s2", started_wall_ns=BEGAN, ended_wall_ns=None, end=SessionEnd.RUNNING))
    page = sessions_page(filled.reader, None, NOW)
    assert [(row.session.id, row.session.end.value) for row in page.rows] == [
        ("s2", "running"),
        ("s1", "killed"),
    ]
    assert page.rows[0].length_ns == NOW - BEGAN
    one = session_page(filled.reader, "s1", TOOLS, NOW)
    assert one is not None
    assert [stall.id for stall in one.latest] == ["s1-2", "s1-3", "s1-1"]
    assert session_page(filled.reader, "s", TOOLS, NOW) is None


def test_frames_and_issues_have_their_pages(filled: Store):
    frames = frames_page(filled.reader)
    assert [one.session.id for one in frames.sessions] == ["s1"]
    assert [(one.frame.dropped, one.stall and one.stall.id) for one in frames.worst] == [(23, "s1-1")]
    kinds = {
        row.group.kind.value for row in groups_page(filled.reader, Filters(query=OTHERS, kind="other")).rows
    }
    assert kinds == {"jank", "input", "idle", "startup", "slow-method"}


def test_changes_are_those_of_the_latest_version(store: Store):
    old = session(id="a", version="1.0", started_wall_ns=BEGAN, ended_wall_ns=BEGAN + 3_600 * S)
    new = session(id="b", version="1.1", started_wall_ns=BEGAN + 7_200 * S, ended_wall_ns=BEGAN + 10_800 * S)
    store.put([old, new], [stall(id=f"a-{n}", session="a", began_wall_ns=BEGAN + n * S) for n in range(40)])
    page = changes_page(store.reader, None, NOW)
    assert page.comparison is not None
    assert (page.comparison.before.label, page.comparison.after.label) == ("version 1.0", "version 1.1")
    assert [one.change.value for one in page.rows] == ["gone"]


def test_what_changed_for_certain_is_apart_from_chance(store: Store):
    hour = 3_600 * S
    before = session(id="a", started_wall_ns=BEGAN, ended_wall_ns=BEGAN + 3 * hour)
    after = session(id="b", started_wall_ns=BEGAN + 4 * hour, ended_wall_ns=BEGAN + 7 * hour)
    often = [stall(id=f"a-{n}", session="a", began_wall_ns=BEGAN + n * 100 * S) for n in range(100)]
    once = stall(id="once", session="a", fingerprint="1:once", began_wall_ns=BEGAN + hour)
    store.put([before, after], [*often, once])
    page = changes_page(store.reader, None, NOW)
    assert [one.fingerprint for one in page.certain] == [STALL.fingerprint]
    assert [one.fingerprint for one in page.rows] == ["1:once"]
    assert page.watched_ns == (3 * hour, 3 * hour)
    html = let_in(client_of(store)).get("/changes").text
    assert "1 bug that could be chance" in html
    assert "Nothing certain" not in html


def test_changes_are_of_one_program(store: Store):
    """Another program's stalls and versions are nothing to compare with."""
    hour = 3_600 * S

    def ran(name: str, number: int, **changes):
        began = BEGAN + number * hour
        ended = began + hour // 2
        return session(id=f"{name}{number}", name=name, started_wall_ns=began, ended_wall_ns=ended, **changes)

    store.put(
        [ran("shop", 0), ran("mail", 1, version="7"), ran("shop", 2), ran("mail", 3, version="8")],
        [
            stall(id="a1-1", session="shop0", fingerprint="1:shop", began_wall_ns=BEGAN + S),
            stall(id="b1-1", session="mail1", fingerprint="1:mail", began_wall_ns=BEGAN + hour + S),
            stall(id="b2-1", session="mail3", fingerprint="1:mail", began_wall_ns=BEGAN + 3 * hour + S),
        ],
    )  # fmt: skip
    pages = {
        name: changes_page(store.reader, name, BEGAN + 9 * hour) for name in ("shop", "mail", None, "never")
    }
    assert {page.programs for page in pages.values()} == {("mail", "shop")}
    assert [pages[name].program for name in pages] == ["shop", "mail", "mail", "mail"]
    shop, mail = pages["shop"].comparison, pages["mail"].comparison
    assert shop is not None
    assert mail is not None
    assert [one.fingerprint for one in shop.groups] == ["1:shop"]
    assert [one.fingerprint for one in mail.groups] == ["1:mail"]
    assert (shop.before.sessions, shop.after.sessions) == (1, 1)
    assert (mail.before.label, mail.after.label) == ("version 7", "version 8")


def test_all_killed_sessions_are_counted_however_many_came_after(store: Store):
    after = [
        session(id=f"t{n}", end=SessionEnd.EXIT, started_wall_ns=BEGAN + n * S, ended_wall_ns=BEGAN + n * S)
        for n in range(60)
    ]
    store.put([SESSION, *after], [STALL])
    assert overview_page(store.reader, TOOLS, (), NOW).killed == 1


def test_one_run_has_nothing_to_be_compared_with(filled: Store):
    assert changes_page(filled.reader, None, NOW).comparison is None


# ---- pictures --------------------------------------------------------------------------------


def test_a_flame_graph_has_every_stack_by_its_weight():
    graph = flame([STALL, STALL])
    assert graph.total_ns == 2 * 412 * MS
    assert graph.tree is not None

    def weights(node: dict) -> None:
        assert sum(child["value"] for child in node["children"]) <= node["value"]
        for child in node["children"]:
            weights(child)

    weights(graph.tree)
    assert graph.tree["children"][0]["name"] == "handle"
    assert (graph.hot[0].function, graph.hot[0].line, graph.hot[0].share) == ("load_orders", 87, 1.0)


def test_recursion_counts_a_line_once():
    frame = StackFrame(function="f", qualname="f", file="/a.py", line=1, in_app=True)
    deep = dataclasses.replace(STALL, stacks=(WeightedStack(weight_ns=5, frames=(frame,) * 5_000),))
    graph = flame([deep])
    assert [(one.share, one.self_share) for one in graph.hot] == [(1.0, 1.0)]


def test_nothing_is_drawn_of_nothing():
    assert flame([]).tree is None
    assert heat_map([], 10) is None
    assert spark_bars([0, 0], 10, 10) == ()
    assert spark_bars([], 10, 10) == ()


def test_each_stall_has_its_place_in_the_heat_map():
    marks = [(BEGAN, 120 * MS), (BEGAN + 10 * S, 120 * MS), (BEGAN + 10 * S, 7 * S)]
    heat = heat_map(marks, 10)
    assert heat is not None
    assert sum(cell.count for cell in heat.cells) == 3
    assert {(cell.column, heat.edges_ns[cell.row]) for cell in heat.cells} == {
        (0, 100 * MS),
        (9, 100 * MS),
        (9, 5 * S),
    }


def test_points_lie_in_their_box_the_longest_on_top():
    marks = [(BEGAN, 120 * MS), (BEGAN + 10 * S, 7 * S), (BEGAN + 5 * S, 300 * MS)]
    found = scatter(marks)
    (x1, y1), (x2, y2), (x3, y3) = found.points
    assert x1 < x3 < x2
    assert y2 < y3 < y1
    assert [length for _, length in found.ticks] == [
        100 * MS, 200 * MS, 500 * MS, S, 2 * S, 5 * S, 10 * S
    ]  # fmt: skip
    assert all(0 < value < 100 for point in found.points for value in point)


@pytest.mark.parametrize("length", [0, 1, 1 << 62])
def test_points_of_any_length_can_be_drawn(length: int):
    found = scatter([(BEGAN, length), (BEGAN, length)])
    assert len(found.points) == 2
    assert all(0 < value < 100 for point in found.points for value in point)


def test_a_run_has_its_bugs_its_course_and_how_long_events_wait(filled: Store):
    page = session_page(filled.reader, "s1", TOOLS, NOW)
    assert page is not None
    assert {row.group.fingerprint for row in page.rows} == {"1:f00d", "1:dead"}
    assert page.chart is not None
    assert page.chart.scale.begin_wall_ns <= SESSION.started_wall_ns
    assert page.spread is not None
    assert len(page.spread.issues) == 3
    told = TOOLS.longer(SESSION.loops[0], [0])
    assert [(row.words, row.share) for row in page.waits[0].rows] == [
        ("none", 1 - told[0]),
        ("up to 1 ms", 0.0),
        ("1 ms to 10 ms", 0.0),
        ("10 ms to 50 ms", 0.5),
    ]


def test_levels_show_one_beside_many():
    assert level_of(1, 1_000) == 1
    assert level_of(1_000, 1_000) == 5
    assert level_of(1, 1) == 5


@pytest.mark.parametrize("length", [0, 1, S, 59 * S, 86_400 * S, 400 * 86_400 * S, 1 << 61])
def test_scales_cover_their_time(length: int):
    rounded = round_scale(BEGAN, BEGAN + length, least=20, most=60)
    assert rounded.cells >= 20
    for scale in (rounded, exact_scale(BEGAN, BEGAN + length, 60)):
        assert scale.begin_wall_ns <= BEGAN
        assert scale.end_wall_ns > BEGAN + length
        assert scale.cells <= 60


MAIN = frame("main", "/srv/shop/__main__.py", 30, in_app=True)
LOOP = tuple(
    frame(name, "/usr/lib/python3.12/asyncio/base_events.py", 1) for name in ("_run_once", "run_forever")
)
SELECT = frame("select", "/usr/lib/python3.12/selectors.py", 468)
HELD = (frame("hog", "/srv/shop/hog.py", 7, in_app=True), frame("run", "/usr/lib/python3.12/threading.py", 9))
WAITED = dataclasses.replace(
    STALL,
    cause=Cause.GIL,
    holder=Holder(thread="pool-1", culprit=dataclasses.replace(CULPRIT, file="/srv/shop/hog.py")),
    stacks=(WeightedStack(weight_ns=100 * MS, frames=(SELECT, *LOOP, MAIN)),),
    timeline=Timeline(
        spans=(
            Span(
                offset_ns=0,
                length_ns=60 * MS,
                samples=3,
                stack=0,
                activity=Activity(doing=Doing.GIL_WAIT, holder="pool-1", holder_frames=HELD),
            ),
        ),
        seen_from_ns=0,
        seen_until_ns=60 * MS,
    ),
)


def test_the_line_that_started_the_loop_is_no_part_of_the_stall():
    view = timeline_view(WAITED)
    assert view is not None
    assert [block.label for block in view.lanes[1].blocks] == ["select (selectors.py:468)"]
    graph = flame([WAITED])
    assert graph.tree is not None
    assert [node["name"] for node in graph.tree["children"]] == ["select"]
    assert graph.hot == ()


def test_the_stack_of_a_stall_is_that_of_the_work(store: Store):
    store.put([SESSION], [WAITED])
    page = issue_page(store.reader, WAITED.id, TOOLS)
    assert page is not None
    assert page.stacks[0].rows == (SELECT,)
    assert page.stacks[0].frames[-1] == MAIN


def test_a_flame_graph_ends_in_what_the_thread_did():
    graph = flame([STALL])
    assert graph.tree is not None
    leaves: dict[str, int] = {}

    def visit(node: dict[str, Any]) -> None:
        below = sum(one["value"] for one in node["children"])
        assert below <= node["value"]
        if "doing" in node:
            leaves[node["name"]] = node["value"]
        for one in node["children"]:
            visit(one)

    visit(graph.tree)
    # Of the first stack's 390 ms, in the proportion of its spans; a thread that ran has no leaf.
    gc_ns = 390 * MS * 90_345_678 // 390_345_678
    assert leaves == {"[collecting garbage]": gc_ns, "[waiting for the GIL]": 22 * MS}


def test_the_cursor_finds_stacks_and_lines_as_the_page_has_them():
    course = sections(STALL).course
    assert course is not None
    assert [(begin, length, stack) for begin, length, stack, _ in course["spans"]] == [
        (0, 300 * MS, 0),
        (300 * MS, 22 * MS, 1),
        (322 * MS, 90_345_678, 0),
    ]
    names = [[course["frames"][index]["name"] for index in stack] for stack in course["stacks"]]
    assert names == [["handle", "load_orders", "loads", "decode", "raw_decode"], ["handle", "load_orders"]]
    assert course["lines"][1] == ["/srv/shop/orders.py:87", "/srv/shop/web.py:12"]
    assert sections(dataclasses.replace(STALL, timeline=None)).course is None


def test_what_held_the_gil_has_a_flame_graph():
    graph = holding_flame([WAITED, STALL])
    assert graph is not None
    assert graph.tree is not None
    assert (graph.stalls, graph.total_ns) == (1, 60 * MS)
    assert graph.tree["children"] == [
        {"name": "hog", "place": "/srv/shop/hog.py", "own": True, "value": 60 * MS, "children": []}
    ]
    assert [(line.function, line.line) for line in graph.hot] == [("hog", 7)]
    assert holding_flame([STALL]) is None


def test_a_timeline_covers_the_stall_without_gaps():
    spans = (
        Span(offset_ns=0, length_ns=60 * MS, samples=3, stack=0, activity=Activity(doing=Doing.ON_CPU)),
        Span(
            offset_ns=60 * MS,
            length_ns=40 * MS,
            samples=2,
            stack=None,
            activity=Activity(doing=Doing.GIL_WAIT, holder="pool-1"),
        ),
    )
    pause = Pause(
        offset_ns=10 * MS, length_ns=5 * MS, generation=2, collected=9, thread="MainThread", own=True
    )
    timed = Timeline(
        spans=spans, seen_from_ns=20 * MS, seen_until_ns=95 * MS, pauses=(pause,), threads_at_ns=50 * MS
    )
    view = timeline_view(dataclasses.replace(STALL, duration_ns=100 * MS, queue_ns=50 * MS, timeline=timed))
    assert view is not None
    assert [lane.name for lane in view.lanes] == ["Thread", "Line", "Held by", "Garbage", "Queue"]
    thread = view.lanes[0].blocks
    assert thread[0].x == pytest.approx(view.stall_x, abs=0.01)
    assert thread[0].x + thread[0].width == pytest.approx(thread[1].x, abs=0.01)
    assert thread[1].x + thread[1].width == pytest.approx(100, abs=0.01)
    assert "GIL held by pool-1" in view.lanes[2].blocks[0].words
    assert view.threshold_x is None
    assert view.threads_x is not None


def work(name: str | None, ago_ms: int, length_ms: int, **fields: Any) -> EarlierWork:
    kind = WorkKind.TURN if name is None else WorkKind.CALLBACK
    more = {"callbacks": 1, "longest_ns": length_ms * MS, **fields}
    return EarlierWork(kind=kind, name=name, ago_ns=ago_ms * MS, length_ns=length_ms * MS, **more)


def before(*earlier: EarlierWork, **fields: Any) -> EarlierView | None:
    assert STALL.timeline is not None
    timed = dataclasses.replace(STALL.timeline, pauses=(), earlier=earlier, **fields)
    return earlier_view(dataclasses.replace(STALL, timeline=timed))


def test_what_ran_before_a_stall_ends_where_it_begins():
    short = ShortWork(turns=3, callbacks=9, busy_ns=100 * MS, idle_ns=100 * MS)
    view = before(
        work("Shop.refresh", 1_000, 200),
        work(None, 600, 100, callbacks=4, short=short),
        work("Shop.load", 580, 50),
        earlier_last=ShortWork(turns=2, callbacks=1, busy_ns=50 * MS, idle_ns=450 * MS),
    )
    assert view is not None
    lanes = {lane.name: [(block.x, block.width) for block in lane.blocks] for lane in view.lanes}
    assert lanes == {
        "Callbacks": [(0.0, 20.0), (42.0, 5.0)],
        "Turns": [(40.0, 10.0)],
        "Short work": [(20.0, 20.0), (50.0, 50.0)],
    }
    assert [block.height for block in view.lanes[-1].blocks] == [0.5, 0.1]
    assert (view.length_ns, view.ticks[0][1], view.ticks[-1]) == (1_000 * MS, "-1.00 s", (100.0, "stall"))
    assert [(row.ago_ns, row.words, row.is_inner) for row in view.rows] == [
        (1_000 * MS, "Shop.refresh", False),
        (None, "9 short callbacks, 3 turns; waited 100 ms", False),
        (600 * MS, "a turn of 4 callbacks, the longest 100 ms", False),
        (580 * MS, "Shop.load", True),
        (None, "1 short callback, 2 turns; waited 450 ms", False),
    ]


def test_where_nothing_was_long_before_a_stall_nothing_is_drawn():
    assert before(earlier_last=ShortWork(turns=2, callbacks=1, busy_ns=MS, idle_ns=MS)) is None
    assert earlier_view(dataclasses.replace(STALL, timeline=None)) is None


@given(
    st.lists(
        st.builds(
            work,
            st.sampled_from([None, "load", "\x1b[31mred"]),
            st.integers(-5, 1 << 40),
            st.integers(0, 1 << 40),
            short=st.none() | st.builds(ShortWork, **dict.fromkeys(SHORT, st.integers(0, 1 << 62))),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_work_before_a_stall_that_lies_stays_in_its_box(earlier: list[EarlierWork]):
    view = before(*earlier)
    assert view is not None
    for block in (block for lane in view.lanes for block in lane.blocks):
        assert block.x >= -0.001
        assert block.x + block.width <= 100.001
        assert 0 < block.height <= 1
        assert block.words.isprintable()


@pytest.mark.parametrize("offset", [-(1 << 62), 0, 1 << 62])
@pytest.mark.parametrize("duration", [1, 100 * MS, 1 << 62])
def test_a_timeline_that_lies_stays_in_its_box(offset: int, duration: int):
    span = Span(offset_ns=offset, length_ns=1 << 62, samples=0, stack=99, activity=Activity(doing=Doing.GC))
    pause = Pause(offset_ns=offset, length_ns=1 << 62, generation=9, collected=0, thread="", own=False)
    timed = Timeline(spans=(span,), seen_from_ns=offset, seen_until_ns=offset, pauses=(pause,))
    view = timeline_view(dataclasses.replace(STALL, duration_ns=duration, queue_ns=1 << 62, timeline=timed))
    assert view is not None
    for lane in view.lanes:
        for block in lane.blocks:
            assert 0 <= block.x <= 100
            assert block.x + block.width <= 100.2


# ---- many stores -----------------------------------------------------------------------------


def test_several_stores_are_shown_as_one(filled: Store, tmp_path):
    other = Store(tmp_path / "other", retention=Retention(age_ns=1 << 62))
    other.put(
        [session(id="t1", started_wall_ns=BEGAN + 500 * S, ended_wall_ns=BEGAN + 560 * S)],
        [
            stall(id="t1-1", session="t1", began_wall_ns=BEGAN + 510 * S, duration_ns=20 * S),
            stall(id="t1-2", session="t1", began_wall_ns=BEGAN + 520 * S, fingerprint="1:beef"),
        ],
    )
    source = as_one([filled.reader, other.reader])
    groups = {group.fingerprint: group for group in source.groups(STALLS)}
    assert list(groups) == ["1:f00d", "1:dead", "1:beef"]
    both = groups["1:f00d"]
    assert (both.count, both.max_ns, both.worst_id, both.p50_ns) == (3, 20 * S, "t1-1", 900_000_000)
    assert both.first_wall_ns == BEGAN
    assert both.last_wall_ns == BEGAN + 510 * S
    sums = source.totals(STALLS)
    assert (sums.issues, sums.groups) == (5, 3)
    assert [one.id for one in source.issues(STALLS, 3)] == ["t1-2", "t1-1", "s1-2"]
    assert [one.id for one in source.sessions(IssueQuery())] == ["t1", "s1"]
    assert source.issue("t1-2") is not None
    assert source.issue("s1-1") is not None
    again = dataclasses.replace(ISSUES[0], id="t1-jank", session="t1", duration_ns=ISSUES[0].duration_ns + S)
    other.put_issue(again)
    found = {group.fingerprint: group for group in source.groups(OTHERS)}[again.fingerprint]
    assert (found.count, source.issue(found.worst_id)) == (2, again)
    assert found.total_ns == 2 * ISSUES[0].duration_ns + S
    assert source.totals(OTHERS).issues == len(ISSUES) + 1
    page = groups_page(source, Filters())
    assert all(sum(row.spark) == row.group.total_ns for row in page.rows)
    said = Remark(note="both")
    change_each([other, filled], lambda store: store.remark("1:f00d", said), ())
    assert other.reader.remarks() == filled.reader.remarks() == source.remarks()
    query = IssueQuery(fingerprint="1:f00d")
    change_each([other, filled], lambda store: store.maintenance.delete(query), ())
    assert source.totals(query).issues == 0
    other.close()


def test_one_store_is_itself(filled: Store):
    assert as_one([filled.reader]) is filled.reader


def test_a_killed_stall_is_shown(filled: Store):
    page = issue_page(filled.reader, KILLED.id, TOOLS)
    assert page is not None
    assert page.issue.state.value == "killed"
    assert page.drawn is not None
    assert [row.thread.name for row in page.drawn.threads] == ["pool-1"]
