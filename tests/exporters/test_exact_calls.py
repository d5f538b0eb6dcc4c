"""The traced calls of a stall in each format, told apart from its samples."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.building.stalls import BEGAN, MS, STALL, S
from tests.exporters.conftest import written
from tests.exporters.readers import READERS, check_nesting, pprof_profile

from loopcanary.exporters.exact_calls import edges, exact_calls, own_times
from loopcanary.model import StackFrame, Stall, StallState
from loopcanary.model.calls import TracedCall, TracedCalls

TRACK = "exact calls, merged by path"
WHOLE = STALL.duration_ns


def call(name: str, depth: int, calls: int, total_ms: int, self_ms: int, **more: Any) -> TracedCall:
    frame = StackFrame(function=name, qualname=name, file="/srv/a.py", line=depth + 1, in_app=True)
    return TracedCall(
        frame=frame, depth=depth, calls=calls, total_ns=total_ms * MS, self_ns=self_ms * MS, **more
    )


ROWS = (
    call("main", 0, 1, 400, 20, open=True),
    call("load", 1, 3, 300, 100),
    call("parse", 2, 6_000, 200, 200),
    call("save", 1, 1, 80, 80),
)
TRACED = replace(STALL, calls=TracedCalls(rows=ROWS))
SHORT = replace(
    STALL,
    calls=TracedCalls(
        rows=(call("main", 0, 1, 400, 20), call("load", 1, 3, 300, 270)), left_out=9, left_out_ns=110 * MS
    ),
)


def drawn(stall: Stall) -> list[tuple[str, int, int, int]]:
    """Name, begin, length, own time, in ms."""
    return [
        (one.frame.function, one.begin_ns // MS, one.length_ns // MS, one.own_ns // MS)
        for one in exact_calls(stall)
    ]


def test_rows_are_drawn_one_after_the_other_own_time_last():
    assert drawn(TRACED) == [
        ("main", 0, 400, 20),
        ("load", 0, 300, 100),
        ("parse", 0, 200, 200),
        ("save", 300, 80, 80),
    ]
    assert [one.frame.function for one in own_times(exact_calls(TRACED))] == ["parse", "load", "save", "main"]


def test_what_was_left_out_is_drawn_where_it_was():
    assert drawn(SHORT) == [
        ("main", 0, 400, 20),
        ("load", 0, 300, 270),
        ("(short calls left out)", 0, 30, 30),
        ("(short calls left out)", 300, 80, 80),
    ]


def test_only_calls_of_a_killed_process_reach_behind_its_stall():
    late = replace(TRACED, duration_ns=350 * MS)
    assert drawn(late)[0] == ("main", 0, 350, 0)
    assert drawn(late)[-1] == ("save", 300, 50, 50)
    assert drawn(replace(late, state=StallState.KILLED)) == drawn(TRACED)


def test_a_stall_without_traced_calls_has_none():
    assert exact_calls(replace(STALL, calls=None)) == []


NUMBERS = st.integers(-(1 << 62), 1 << 62)
ANY_CALLS = st.builds(
    TracedCalls,
    left_out=st.integers(0, 1),
    rows=st.lists(
        st.builds(
            TracedCall,
            frame=st.just(ROWS[0].frame),
            depth=st.integers(-2, 6),
            calls=NUMBERS,
            total_ns=NUMBERS | st.integers(0, 1_000),
            self_ns=NUMBERS | st.integers(0, 1_000),
        ),
        max_size=20,
    ).map(tuple),
)


@settings(max_examples=200)
@given(calls=ANY_CALLS, state=st.sampled_from(StallState))
def test_whatever_a_store_says_slices_nest_and_times_add_up(calls: TracedCalls, state: StallState):
    found = exact_calls(replace(STALL, calls=calls, state=state))
    check_nesting([(one.begin_ns, one.begin_ns + one.length_ns) for one in found if one.length_ns])
    assert sum(one.own_ns for one in found) == sum(one.length_ns for one in found if len(one.path) == 1)
    assert all(one.own_ns >= 0 for one in found)
    times = [at_ns for at_ns, _, _ in edges(found)]
    assert times == sorted(times)
    assert len(times) == 2 * len(found)


@pytest.mark.parametrize("form", sorted(READERS))
@pytest.mark.parametrize("stall", [TRACED, SHORT], ids=["whole", "left out"])
def test_a_format_has_the_same_samples_beside_exact_calls(form: str, stall: Stall):
    stalls = [stall, replace(stall, id="s1-8", began_wall_ns=BEGAN + S)]
    assert READERS[form](written(form, stalls)) == 2 * WHOLE


def test_chrome_has_a_row_of_exact_calls():
    events = json.loads(written("chrome", [TRACED]))["traceEvents"]
    [track] = [event["tid"] for event in events if event["args"].get("name") == TRACK]
    slices = [event for event in events if event["tid"] == track and event["ph"] == "X"]
    assert [(one["name"], one["ts"], one["dur"], one["args"]["calls"]) for one in slices] == [
        ("main", 0, 400_000, 1),
        ("load", 0, 300_000, 3),
        ("parse", 0, 200_000, 6_000),
        ("save", 300_000, 80_000, 1),
    ]
    assert slices[0]["args"] == {
        "file": "/srv/a.py",
        "line": 1,
        "calls": 1,
        "itself_ms": 20,
        "returned": False,
    }
    assert "returned" not in slices[1]["args"]


def test_a_trace_says_how_much_was_overwritten():
    lost = replace(TRACED, calls=TracedCalls(rows=ROWS, lost=4_096))
    events = json.loads(written("chrome", [lost]))["traceEvents"]
    said = {event["name"] for event in events if event["args"].get("overwritten") == 4_096}
    assert said == {"main"}


def test_speedscope_has_an_evented_profile_of_the_calls():
    later = replace(TRACED, id="s1-8", began_wall_ns=BEGAN + S, title="another")
    document = json.loads(written("speedscope", [TRACED, later]))
    sampled, evented = document["profiles"]
    assert (sampled["type"], evented["type"]) == ("sampled", "evented")
    assert evented["name"] == f"{sampled['name']}, {TRACK}"
    assert evented["endValue"] == 800 * MS
    names = [frame["name"] for frame in document["shared"]["frames"]]
    told = [(one["type"], names[one["frame"]], one["at"] // MS) for one in evented["events"]]
    assert told[:10] == [
        ("O", STALL.title, 0),
        ("O", "main", 0),
        ("O", "load", 0),
        ("O", "parse", 0),
        ("C", "parse", 200),
        ("C", "load", 300),
        ("O", "save", 300),
        ("C", "save", 380),
        ("C", "main", 400),
        ("C", STALL.title, 400),
    ]
    assert told[10] == ("O", "another", 400)


def test_firefox_has_a_thread_of_exact_calls():
    document = json.loads(written("firefox", [TRACED]))
    [thread] = [one for one in document["threads"] if one["name"].endswith(", exact calls")]
    assert thread["name"] == "MainThread (asyncio), exact calls"
    assert thread["samples"]["weight"] == [200, 100, 80, 20, 0]
    assert thread["samples"]["time"] == [0, 200, 300, 380, 400]
    assert thread["markers"]["data"][0] == {
        "type": "ExactCalls",
        "name": "main",
        "calls": 1,
        "itself": 20,
        "open": "yes",
    }
    assert [data["calls"] for data in thread["markers"]["data"]] == [1, 3, 6_000, 1]


def test_pprof_has_counts_and_times_of_calls():
    profile = pprof_profile(written("pprof", [TRACED]))
    names = {one.id: profile.string_table[one.name] for one in profile.function}
    functions = {one.id: names[one.line[0].function_id] for one in profile.location}
    exact = {
        ";".join(functions[at] for at in reversed(one.location_id)): list(one.value)
        for one in profile.sample
        if any(one.value[2:])
    }
    assert exact == {
        "main": [0, 0, 1, 20 * MS],
        "main;load": [0, 0, 3, 100 * MS],
        "main;load;parse": [0, 0, 6_000, 200 * MS],
        "main;save": [0, 0, 1, 80 * MS],
    }


def test_collapsed_stacks_of_calls_are_a_tower_of_their_own():
    lines = written("collapsed", [TRACED]).decode().splitlines()
    assert [line for line in lines if line.startswith("shop, exact calls;")] == [
        "shop, exact calls;MainThread;main (a.py:1) 20000000",
        "shop, exact calls;MainThread;main (a.py:1);load (a.py:2) 100000000",
        "shop, exact calls;MainThread;main (a.py:1);load (a.py:2);parse (a.py:3) 200000000",
        "shop, exact calls;MainThread;main (a.py:1);save (a.py:2) 80000000",
    ]
