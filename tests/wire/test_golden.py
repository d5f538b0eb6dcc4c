"""The JSON of one value of each kind, byte by byte as the first codec wrote it (golden.json)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.building.issues import ISSUES, START_IN_TIME, TRACES
from tests.building.stalls import BEGAN, KILLED, SESSION, STALL, hostile_stall

from loopcanary.model import Cause, Surroundings
from loopcanary.wire import to_wire

GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text(encoding="utf-8"))
BARE = replace(
    STALL,
    timeline=None,
    callback=None,
    task=None,
    culprit=None,
    blocker=None,
    second_cause=Cause.GC,
    surroundings=Surroundings(window_ns=5, throttled_ns=7, system_cpu=0.5, major_faults=2),
)
TRACED = replace(
    SESSION,
    traces=TRACES,
    statistics={"samples": 3},
    imported_wall_ns=BEGAN,
    imported_from="a.zip",
)
RUNNING = replace(
    SESSION,
    ended_wall_ns=None,
    loops=(replace(SESSION.loops[0], histogram=((1000, 3), (2000, 1)), gc_ns=5, callback_weighted_ns=7),),
)
VALUES = {
    "stalls": (STALL, KILLED, hostile_stall("<text>"), BARE),
    "issues": (*ISSUES, START_IN_TIME),
    "sessions": (SESSION, TRACED, RUNNING),
}


@pytest.mark.parametrize("kind", VALUES)
def test_the_json_of_a_value_is_the_golden_one(kind: str) -> None:
    assert [json.dumps(to_wire(value)) for value in VALUES[kind]] == [
        json.dumps(golden) for golden in GOLDEN[kind]
    ]
