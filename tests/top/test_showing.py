"""Order, filter, columns, text and JSON: pure functions of rows."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.building.stalls import GETS

from loopcanary import diagnosis
from loopcanary.model import Cause, Culprit, Holder, StallState
from loopcanary.model.live import Life, Work
from loopcanary.top import printing
from loopcanary.top.about import LINES, about
from loopcanary.top.choosing import DEAD_SHOWN_NS, EXITED_SHOWN_NS, ORDERS, RowChoice, chosen
from loopcanary.top.columns import COLUMNS, NOTHING, fitted, fitting, headline, last_words
from loopcanary.top.past import Past
from loopcanary.top.rows import LaneRow, State, rows
from loopcanary.words.text import display_width

from .readings import MS, NOW, WALL, S, in_callback, lane, process, session, stall


def rows_of(*processes, now_wall_ns=WALL) -> list[LaneRow]:
    return rows(processes, Past(), diagnosis.loop_health, now_wall_ns)


def named(name: str, *lanes, pid: int = 41, **fields):
    return process(
        *lanes, key=f"{name}-{pid}", session=session(name=name, pid=pid, id=f"{name}-{pid}"), **fields
    )


SHOP = rows_of(
    named("idle", pid=9),
    named("hangs", in_callback(5 * S), pid=2),
    named("killed", in_callback(2 * S, in_stall=True), pid=3, life=Life.KILLED),
    named("busy", in_callback(30 * MS), pid=1, last={0: stall(began_wall_ns=WALL - S)}),
    named("stalls", in_callback(300 * MS), pid=7, last={0: stall(began_wall_ns=WALL - 2 * S)}),
    named("exited", pid=4, life=Life.EXITED),
    named("hangs longer", in_callback(9 * S), pid=5),
)


def order(**choice) -> list[str]:
    return [row.program for row in chosen(SHOP, RowChoice(**choice))]


def test_trouble_comes_first():
    assert order() == ["hangs longer", "hangs", "stalls", "busy", "idle", "killed", "exited"]


def test_a_loop_that_is_busy_now_and_then_stays_where_it_is():
    calm = rows_of(named("a"), named("b"))
    moved = rows_of(named("a"), named("b", in_callback(MS)))
    assert [r.program for r in chosen(calm, RowChoice())] == [r.program for r in chosen(moved, RowChoice())]


def test_other_orders():
    assert order(order="pid")[:3] == ["busy", "hangs", "killed"]
    assert order(order="pid", reverse=True)[0] == "idle"
    assert order(order="program")[0] == "busy"
    assert order(order="latest")[:2] == ["busy", "stalls"]


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("reverse", [False, True])
def test_every_order_takes_every_row(name: str, reverse: bool):
    assert sorted(order(order=name, reverse=reverse)) == sorted(row.program for row in SHOP)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("LONGER", ["hangs longer"]),
        ("request-7 hung", ["hangs longer", "hangs"]),
        ("pricing.py", ["stalls", "busy"]),
        ("killed", ["killed"]),
        ("nothing has this", []),
        ("  ", ["hangs longer", "hangs", "stalls", "busy", "idle", "killed", "exited"]),
    ],
)
def test_a_filter_looks_at_everything_that_is_shown(words: str, found: list[str]):
    assert order(words=words) == found


def test_old_rows_are_left_out_by_default():
    old = rows_of(named("old", life=Life.KILLED), now_wall_ns=WALL + DEAD_SHOWN_NS)
    exited = rows_of(named("job", life=Life.EXITED), now_wall_ns=WALL + EXITED_SHOWN_NS)
    closed = lane(sums={"lane": 1, "closed_ns": NOW - S})
    gone = rows_of(named("shop", lane(), closed))
    assert chosen(old, RowChoice()) == []
    assert chosen(exited, RowChoice()) == []
    assert chosen(old + exited, RowChoice(everything=True)) == old + exited
    assert [row.state for row in chosen(gone, RowChoice())] == [State.IDLE]
    assert len(chosen(gone, RowChoice(everything=True))) == 2


# ---- columns -------------------------------------------------------------------------------------


def test_columns_fold_by_importance():
    for width in range(20, 260):
        table = fitting(width)
        assert sum(size for _, size in table) + len(table) - 1 <= width, width
        shown = sorted(column.importance for column, _ in table)
        assert shown == list(range(1, len(shown) + 1)), width
    assert all(size >= column.width for column, size in table)


def test_what_80_and_160_characters_show():
    assert [column.heading for column, _ in fitting(78)] == [
        *("state", "pid", "program", "busy", "p99", "stalls", "in callback"),
    ]
    assert len(fitting(158)) == len(COLUMNS)


texts = st.text(max_size=80)
HIDDEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def is_safe(line: str) -> bool:
    """Nothing in it moves a cursor, turns the order of reading round, or ends the line."""
    return not any(unicodedata.category(character) in HIDDEN for character in line)


@settings(max_examples=40)
@given(name=texts, thread=texts, callback=texts, task=texts, width=st.integers(20, 200))
def test_no_name_breaks_a_line(name, thread, callback, task, width):
    work = Work(callback=callback, task=task, scene=task)
    reading = in_callback(5 * S, work=work, sums={"thread_name": thread, "loop_kind": task[:10]})
    hostile = stall(culprit=replace(stall().culprit, file=name, qualname=callback, source=task))
    [row] = rows_of(process(reading, session=session(name=name, python=thread), last={0: hostile}))
    for line in printing.lines([row], 0, width):
        assert is_safe(line)
        assert display_width(line) <= width or line == headline([row], 0)
    for line in printing.lines([row], 0, None):
        assert is_safe(line)
    lines = about(row)
    assert len(lines) == LINES
    assert all(is_safe(text) for line in lines for text, _ in line)
    json.loads(printing.render([row], WALL))


@settings(max_examples=60)
@given(text=texts, width=st.integers(1, 40))
def test_a_cell_is_as_wide_as_it_shall_be(text, width):
    assert display_width(fitted(text, width)) == width


# ---- text and JSON -----------------------------------------------------------------------------------


def test_as_text():
    lines = list(printing.lines(chosen(SHOP, RowChoice(words="hangs")), 5, 80))
    assert lines[0] == "2 programs, 2 loops, 5 not shown: 2 hung"
    assert lines[1].split()[:3] == ["state", "pid", "program"]
    assert lines[2].startswith("hung 9.00 s")
    assert "handle (request-7)" in lines[2]


def test_without_programs_it_says_what_to_do():
    assert list(printing.lines([], 0, 80)) == list(NOTHING)
    assert any("loopcanary run" in line for line in NOTHING)
    assert max(map(len, NOTHING)) <= 72


def test_the_last_stall_is_at_the_line_of_who_held_the_gil():
    hog = Culprit(function="hog", qualname="hog", file="/srv/shop/hog.py", line=7, source=None, in_app=True)
    [row] = rows_of(process(last={0: stall(cause=Cause.GIL, holder=Holder(thread="pool", culprit=hog))}))
    assert last_words(row, "/srv/shop") == "250 ms gil hog.py:7"
    assert any(("hog.py:7", "place") in line for line in about(row, "/srv/shop"))


def test_the_last_stall_says_what_it_waited_for():
    [row] = rows_of(process(last={0: stall(cause=Cause.LOCK, stacks=(GETS,))}))
    assert any("waiting for an item in a queue" in text for line in about(row) for text, _ in line)


def test_as_json():
    latest = stall(state=StallState.ONGOING)
    [row] = rows_of(process(in_callback(5 * S), last={0: latest}, store="/srv/shop/.loopcanary"))
    [told] = json.loads(printing.render([row], WALL))["loops"]
    assert told["state"] == "hung"
    assert told["state_ms"] == told["running_ms"] == 5_000
    assert told["threshold_ms"] == 100
    assert told["utilization"]["now"] is None
    assert told["callback"] == "handle"
    assert told["last_stall"]["culprit"]["line"] == 13
    assert told["last_stall"]["cause"] == "sleep"
    assert told["store"] == "/srv/shop/.loopcanary"


def test_every_field_of_the_json_is_documented(tree):
    text = (tree / "docs/how-to/top.md").read_text(encoding="utf-8")
    [row] = rows_of(process(last={0: stall()}))
    fields = {*printing.row_to_dict(row), *printing.row_to_dict(row)["last_stall"]}
    assert {field for field in fields if f"`{field}`" not in text} == set()
