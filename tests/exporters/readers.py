"""Readers of the formats, each by what its makers published. They check all they read, and return the
stalled time of a file."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

PUBLISHED = Path(__file__).parent / "published"
MS = 1_000_000


def strict_json(data: bytes) -> Any:
    """JSON as browsers read it: no NaN; ASCII, and no lone surrogate that UTF-8 could not hold."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    assert b"<" not in data
    return json.loads(data.decode("ascii"), parse_constant=refuse)


# ---- Speedscope ------------------------------------------------------------------------------


def speedscope(data: bytes) -> int:
    document = strict_json(data)
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((PUBLISHED / "speedscope-file-format-schema.json").read_text())
    jsonschema.validate(document, schema)
    frames, total = document["shared"]["frames"], 0
    for profile in document["profiles"]:
        if profile["type"] == "evented":
            check_events(profile, len(frames))
            continue
        assert len(profile["samples"]) == len(profile["weights"])
        assert {number for sample in profile["samples"] for number in sample} <= set(range(len(frames)))
        assert profile["endValue"] - profile["startValue"] == sum(profile["weights"])
        assert profile["unit"] == "nanoseconds"
        total += sum(profile["weights"])
    return total


def check_events(profile: dict[str, Any], frames: int) -> None:
    """As Speedscope asks of them: in order of time, each end that of the frame that began last."""
    opened: list[int] = []
    at = profile["startValue"]
    for event in profile["events"]:
        assert at <= event["at"] <= profile["endValue"]
        at = event["at"]
        if event["type"] == "O":
            assert 0 <= event["frame"] < frames
            opened.append(event["frame"])
        else:
            assert opened.pop() == event["frame"]
    assert not opened


# ---- Firefox Profiler ------------------------------------------------------------------------

# Of src/types/profile.js of version 48: the columns, what each holds, and `?` where it may be null.
_COLUMNS = {
    "samples": {"stack": "stackTable?", "time": "number", "weight": "number"},
    "markers": {
        "data": "object",
        "name": "stringArray",
        "startTime": "number",
        "endTime": "number",
        "phase": "number",
        "category": "categories",
    },
    "stackTable": {
        "frame": "frameTable",
        "prefix": "stackTable?",
        "category": "categories",
        "subcategory": "number",
    },
    "frameTable": {
        "address": "number",
        "inlineDepth": "number",
        "category": "categories",
        "subcategory": "number",
        "func": "funcTable",
        "nativeSymbol": "nativeSymbols?",
        "innerWindowID": "number?",
        "implementation": "stringArray?",
        "line": "number?",
        "column": "number?",
    },
    "funcTable": {
        "isJS": "bool",
        "relevantForJS": "bool",
        "name": "stringArray",
        "resource": "number",
        "fileName": "stringArray?",
        "lineNumber": "number?",
        "columnNumber": "number?",
    },
    "resourceTable": {"lib": "number", "name": "number", "host": "number", "type": "number"},
    "nativeSymbols": {"libIndex": "number", "address": "number", "name": "number", "functionSize": "number"},
}
_META = {
    *(
        "interval",
        "startTime",
        "processType",
        "product",
        "stackwalk",
        "version",
        "preprocessedProfileVersion",
    ),
    *("categories", "markerSchema", "symbolicated", "extensions"),
}
_THREAD = {
    *("processType", "processStartupTime", "processShutdownTime", "registerTime", "unregisterTime"),
    *("pausedRanges", "name", "isMainThread", "pid", "tid", "stringArray"),
}


def firefox(data: bytes) -> int:
    document = strict_json(data)
    assert set(document) >= {"meta", "libs", "threads"}
    meta = document["meta"]
    assert set(meta) >= _META
    assert (meta["preprocessedProfileVersion"], meta["product"]) == (48, "loopcanary")
    assert any(category["color"] == "grey" for category in meta["categories"])
    known = {schema["name"] for schema in meta["markerSchema"]}
    total_ms = 0.0
    for thread in document["threads"]:
        assert set(thread) >= _THREAD | set(_COLUMNS)
        assert isinstance(thread["pid"], str)
        for table in _COLUMNS:
            _check_table(thread, table, meta)
        assert thread["samples"]["time"] == sorted(thread["samples"]["time"])
        for stack, prefix in enumerate(thread["stackTable"]["prefix"]):
            assert prefix is None or prefix < stack  # a tree, told from its roots
        markers = thread["markers"]
        for payload, begin, end in zip(
            markers["data"], markers["startTime"], markers["endTime"], strict=True
        ):
            assert payload["type"] in known
            assert begin <= end
        if thread["samples"]["weightType"] == "tracing-ms" and not thread["name"].endswith(", exact calls"):
            total_ms += sum(thread["samples"]["weight"])
    tids = [thread["tid"] for thread in document["threads"]]
    assert len(set(tids)) == len(tids)
    return round(total_ms * MS)


def _check_table(thread: dict[str, Any], table: str, meta: dict[str, Any]) -> None:
    rows = thread[table]
    for column, holds in _COLUMNS[table].items():
        values = rows[column]
        assert len(values) == rows["length"], (table, column)
        if holds.endswith("?"):
            values = [value for value in values if value is not None]
        kind = holds.rstrip("?")
        if kind in ("number", "bool", "object"):
            wanted = {"number": (int, float), "bool": bool, "object": dict}[kind]
            assert all(isinstance(value, wanted) for value in values), (table, column)
            continue
        room = meta[kind] if kind == "categories" else thread[kind]
        length = len(room) if isinstance(room, list) else room["length"]
        assert all(0 <= value < length for value in values), (table, column)


# ---- pprof -----------------------------------------------------------------------------------


def pprof_profile(data: bytes) -> Any:
    pytest.importorskip("google.protobuf")
    from tests.exporters.proto_text import message_class

    profile = message_class((PUBLISHED / "profile.proto").read_text(), "Profile")()
    profile.ParseFromString(gzip.decompress(data))
    return profile


def pprof(data: bytes) -> int:
    profile = pprof_profile(data)
    strings = profile.string_table
    assert strings[0] == ""
    assert len(set(strings)) == len(strings)
    assert [(strings[kind.type], strings[kind.unit]) for kind in profile.sample_type] == [
        ("samples", "count"),
        ("stalled", "nanoseconds"),
        ("calls", "count"),
        ("time", "nanoseconds"),
    ]
    assert strings[profile.default_sample_type] == "stalled"
    functions = {function.id for function in profile.function}
    locations = {location.id for location in profile.location}
    assert 0 not in functions | locations
    assert len(functions) == len(profile.function)
    assert len(locations) == len(profile.location)
    for location in profile.location:
        assert location.mapping_id == profile.mapping[0].id
        assert {line.function_id for line in location.line} <= functions
    for sample in profile.sample:
        assert len(sample.value) == len(profile.sample_type)
        assert sample.location_id
        assert set(sample.location_id) <= locations
        assert all(0 < label.key < len(strings) and 0 < label.str < len(strings) for label in sample.label)
    return sum(sample.value[1] for sample in profile.sample)


# ---- traces ----------------------------------------------------------------------------------


def chrome(data: bytes) -> int:
    """By "Trace Event Format" (Google, 2016): the phases X, i, s, f and M, and the fields that each has."""
    document = strict_json(data)
    assert document["displayTimeUnit"] in ("ms", "ns")
    tracks: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    named, main, total_us = set(), set(), 0.0
    flows: dict[int, float] = {}
    for event in document["traceEvents"]:
        where = event["pid"], event["tid"]
        assert isinstance(event["name"], str)
        assert isinstance(event["args"], dict)
        match event["ph"]:
            case "M":
                assert event["name"] in ("process_name", "thread_name", "thread_sort_index")
                named.add(where if event["name"] == "thread_name" else (event["pid"], 0))
            case "X":
                assert isinstance(event["ts"], float | int)
                assert event["dur"] >= 0
                tracks[where].append((event["ts"], event["ts"] + event["dur"]))
                if "group" in event["args"]:
                    main.add(where)
                    total_us += event["dur"]
            case "i":
                assert event["s"] in ("g", "p", "t")
            case "s":
                flows[event["id"]] = event["ts"]
            case "f":
                assert event["bp"] == "e"
                assert flows.pop(event["id"]) == event["ts"]
            case other:
                raise AssertionError(other)
        assert (event["pid"], 0) in named
        assert event["ph"] == "M" or where in named
    assert not flows
    for slices in tracks.values():
        check_nesting(slices)
    return round(total_us * 1_000)


def check_nesting(slices: list[tuple[float, float]]) -> None:
    """Slices of one track lie inside each other or apart, those that hold others before what they hold."""
    open_until: list[float] = []
    latest = float("-inf")
    for begin, end in slices:
        assert begin >= latest
        latest = begin
        while open_until and open_until[-1] <= begin:
            open_until.pop()
        assert not open_until or end <= open_until[-1]
        open_until.append(end)


# ---- lines -----------------------------------------------------------------------------------


def collapsed(data: bytes) -> int:
    """As stackcollapse scripts write and flamegraph.pl reads it."""
    total = 0
    for line in data.decode("utf-8").removesuffix("\n").split("\n"):
        match = re.fullmatch(r"([^;]+(?:;[^;]+)*) (\d+)", line)
        assert match, line
        if not match[1].partition(";")[0].endswith(", exact calls"):
            total += int(match[2])
    return total


def csv_rows(data: bytes) -> list[dict[str, str]]:
    text = data.decode("utf-8")
    assert "\0" not in text
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


def table(data: bytes) -> int:
    rows = csv_rows(data)
    assert all(None not in row and None not in row.values() for row in rows)
    return sum(round(float(row["duration_ms"]) * MS) for row in rows)


def jsonl(data: bytes) -> int:
    from loopcanary.model import Stall
    from loopcanary.wire import from_wire

    lines = [strict_json(line) for line in data.removesuffix(b"\n").split(b"\n")]
    assert all("program" in line for line in lines)
    return sum(from_wire(Stall, line).duration_ns for line in lines)


def matrix(data: bytes) -> int:
    lines = [strict_json(line) for line in data.removesuffix(b"\n").split(b"\n")]
    for line in lines:
        known = {int(one.split(",", 2)[0]) for one in line.get("methodMapping", "").splitlines()}
        rows = [row.split(",") for row in line.get("stack", "").splitlines()]
        assert {int(number) for _, number, _, _ in rows} <= known
    return sum(line["loopcanary"]["duration_ns"] for line in lines)


READERS = {
    "speedscope": speedscope,
    "firefox": firefox,
    "pprof": pprof,
    "chrome": chrome,
    "perfetto": chrome,
    "collapsed": collapsed,
    "csv": table,
    "jsonl": jsonl,
    "matrix": matrix,
}
