"""What each format shows."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.building.stalls import BEGAN, FRAMES, KILLED, MS, STALL, S, stall
from tests.exporters import readers
from tests.exporters.conftest import written
from tests.exporters.proto_text import fields_of
from tests.exporters.readers import PUBLISHED, csv_rows, pprof_profile

from loopcanary.model import Stall, ThreadView, Timeline
from loopcanary.wire import to_wire


def hang() -> Stall:
    """A hang at which all threads were read."""
    assert STALL.timeline is not None
    threads = (
        ThreadView(tid=5, name="pool-1", state="S", holds_gil=True, waits_for_gil=False, frames=FRAMES[:4]),
        ThreadView(tid=6, name="", state="S", holds_gil=False, waits_for_gil=False, frames=()),
    )
    return replace(
        STALL, threads=threads, timeline=replace(STALL.timeline, threads_at_ns=400 * MS), scene="checkout"
    )


def test_speedscope_has_a_profile_for_each_thread() -> None:
    other = replace(STALL, id="s1-9", thread="worker", title="other")
    document = json.loads(written("speedscope", [STALL, other]))
    assert [profile["name"] for profile in document["profiles"]] == [
        "shop (41), MainThread (asyncio)",
        "shop (41), worker (asyncio)",
    ]
    frames = document["shared"]["frames"]
    sample = document["profiles"][0]["samples"][0]
    named = [frames[number]["name"] for number in sample]
    assert named[:2] == [STALL.title, "main"]
    assert frames[sample[-1]] == {
        "name": "raw_decode",
        "file": "/usr/lib/python3.12/json/decoder.py",
        "line": 355,
    }


def test_collapsed_stacks_begin_with_program_and_thread() -> None:
    lines = written("collapsed", [STALL]).decode().splitlines()
    assert lines[0].startswith("shop;MainThread;main (web.py:40);")
    assert lines[0].endswith(";raw_decode (decoder.py:355) 390345678")
    assert lines[1].startswith("shop;MainThread;(outer frames left out);")


def test_pprof_tells_where_and_of_what_a_sample_is() -> None:
    profile = pprof_profile(written("pprof", [hang()]))
    strings = profile.string_table
    sample = profile.sample[0]
    labels = {strings[label.key]: strings[label.str] for label in sample.label}
    assert labels == {
        "program": "shop",
        "thread": "MainThread",
        "loop": "asyncio",
        "scene": "checkout",
        "cause": "native-cpu",
        "group": "1:f00d",
        "callback": "handle",
    }
    functions = {function.id: strings[function.name] for function in profile.function}
    lines = {location.id: location.line[0] for location in profile.location}
    leaf = lines[sample.location_id[0]]
    assert (functions[leaf.function_id], leaf.line) == ("raw_decode", 355)
    assert (profile.time_nanos, profile.duration_nanos) == (BEGAN, STALL.duration_ns)
    assert sum(sample.value[0] for sample in profile.sample) == STALL.samples


def test_the_messages_of_pprof_are_those_that_it_publishes() -> None:
    messages = pytest.importorskip("loopcanary.exporters.as_pprof").MESSAGES
    published = fields_of((PUBLISHED / "profile.proto").read_text())
    for message, fields in messages.items():
        for name, number, kind in fields:
            assert published[message][name] == (number, kind), f"{message}.{name}"


@pytest.mark.parametrize("later", range(0, 20 * S, 1_234_567_891))
def test_chrome_nests_when_a_reader_adds_up_its_numbers(later: int) -> None:
    assert STALL.timeline is not None
    spans = tuple(
        replace(span, offset_ns=number * 33_333_337, length_ns=33_333_337, stack=number % 2)
        for number, span in enumerate(STALL.timeline.spans * 5)
    )
    seen = replace(STALL.timeline, spans=spans, earlier=())
    stalls = [
        replace(STALL, id=f"s1-{begin}", began_wall_ns=BEGAN + begin, duration_ns=500_000_055, timeline=seen)
        for begin in (0, S + later, 2 * S + later + 1)
    ]
    assert readers.chrome(written("chrome", stalls)) == 3 * 500_000_055


def test_chrome_has_rows_for_thread_holders_and_gc() -> None:
    events = json.loads(written("chrome", [hang()]))["traceEvents"]
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    rows: dict[str, list[dict[str, object]]] = {name: [] for name in names.values()}
    for event in events:
        if event["ph"] != "M":
            rows[names[event["tid"]]].append(event)
    assert list(rows) == [
        "MainThread (asyncio)",
        "what it did",
        "held up by",
        "garbage collections",
        "turns before stalls",
        "callbacks before stalls",
        "pool-1, at hangs",
        "thread 6, at hangs",
    ]
    did = [(event["name"], event["ts"], event["dur"]) for event in rows["what it did"]]
    assert did == [
        ("on-cpu", 0, 300_000),
        ("gil-wait, held by pool-1", 300_000, 22_000),
        ("gc", 322_000, 90_345.678),
    ]
    held, _ = rows["held up by"]
    assert held["name"] == "GIL held by pool-1: loads"
    assert [event["ts"] for event in rows["garbage collections"]] == [-2_000_000, 330_000]
    [turn] = rows["turns before stalls"]
    assert (turn["ts"], turn["dur"], turn["name"]) == (-900_000, 40_000, "turn of 3 callbacks")
    assert turn["args"]["short callbacks"] == 240
    [callback] = rows["callbacks before stalls"]
    assert (callback["ts"], callback["dur"], callback["name"]) == (-500_000, 25_000, "Shop.refresh")
    assert callback["args"] == {"task": "refresher"}
    [pool] = rows["pool-1, at hangs"]
    assert (pool["ph"], pool["ts"], pool["name"]) == ("i", 400_000, "raw_decode")


def test_a_moment_that_two_stalls_have_is_written_once() -> None:
    assert STALL.timeline is not None
    later = 3 * S
    again = replace(STALL.timeline.pauses[1], offset_ns=330 * MS - later)
    seen = replace(STALL.timeline, pauses=(again,), earlier=())
    events = json.loads(
        written("chrome", [STALL, replace(STALL, id="s1-7", began_wall_ns=BEGAN + later, timeline=seen)])
    )["traceEvents"]
    assert sum(event.get("cat") == "gc" and "generation" in event["name"] for event in events) == 2


def test_sessions_with_one_pid_are_processes_of_their_own() -> None:
    stalls = [stall(session="a", id="a-1"), stall(session="b", id="b-1")]
    events = json.loads(written("chrome", stalls))["traceEvents"]
    assert len({event["pid"] for event in events if event["name"] == "process_name"}) == 2
    threads = json.loads(written("firefox", stalls))["threads"]
    assert len({thread["pid"] for thread in threads}) == 2


def test_firefox_has_markers_and_other_threads() -> None:
    document = json.loads(written("firefox", [hang()]))
    main, pool, nameless = document["threads"]
    assert [thread["name"] for thread in (main, pool, nameless)] == [
        "MainThread (asyncio)",
        "pool-1, at hangs",
        "thread 6, at hangs",
    ]
    assert main["processName"] == "shop"
    kinds = [data["type"] for data in main["markers"]["data"]]
    assert kinds == [
        "Stall",
        *["StallActivity"] * 3,
        *["GarbageCollection"] * 2,
        "TurnBefore",
        "CallbackBefore",
    ]
    marker = main["markers"]["data"][0]
    before = {data["type"]: data for data in main["markers"]["data"]}
    assert (before["TurnBefore"]["name"], before["TurnBefore"]["shortTurns"]) == ("turn of 3 callbacks", 120)
    assert (before["CallbackBefore"]["name"], before["CallbackBefore"]["task"]) == (
        "Shop.refresh",
        "refresher",
    )
    assert (marker["title"], marker["culprit"]) == (STALL.title, "/srv/shop/orders.py:87")
    assert (main["markers"]["startTime"][0], main["markers"]["endTime"][0]) == (0, 412.345678)
    assert pool["samples"]["time"] == [400]
    # Nine samples, and the moment at which the stall was over.
    assert main["samples"]["length"] == STALL.samples + 1
    assert main["samples"]["stack"][-1] is None


def test_an_arrow_leads_from_the_waiter_to_the_holder() -> None:
    events = json.loads(written("chrome", [hang()]))["traceEvents"]
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    flows = [event for event in events if event.get("cat") == "flow"]
    assert [(one["ph"], names[one["tid"]], one["ts"]) for one in flows] == [
        ("s", "MainThread (asyncio)", 300_000),
        ("f", "held up by", 300_000),
    ]


def test_perfetto_is_another_name_of_chrome() -> None:
    assert written("perfetto", [hang()]) == written("chrome", [hang()])


def test_csv_has_a_line_a_stall_that_no_spreadsheet_runs() -> None:
    odd = replace(STALL, callback="=cmd|' /C calc'!A0", task='a,b\n"c"')
    [row, killed] = csv_rows(written("csv", [odd, KILLED]))
    assert row["callback"] == "'=cmd|' /C calc'!A0"
    assert row["task"] == odd.task
    assert (row["program"], row["line"], row["on_cpu_ms"]) == ("shop", "87", "380.0")
    assert (killed["task"], killed["gil_wait_ms"], killed["state"]) == ("", "", "killed")


def test_json_lines_are_the_reports_stalls_with_their_program() -> None:
    [line] = written("jsonl", [STALL]).splitlines()
    document = json.loads(line)
    assert document.pop("program") == "shop"
    assert document == to_wire(STALL)


def test_a_timeline_without_spans_still_has_its_collections() -> None:
    assert STALL.timeline is not None
    bare = Timeline(spans=(), seen_from_ns=0, seen_until_ns=0, pauses=STALL.timeline.pauses)
    document = json.loads(written("firefox", [replace(STALL, timeline=bare, stacks=())]))
    kinds = [data["type"] for data in document["threads"][0]["markers"]["data"]]
    assert kinds == ["Stall", "GarbageCollection", "GarbageCollection"]
