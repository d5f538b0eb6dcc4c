"""How a stall lies in the store: each frame once, and nothing of it lost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from tests.building.anything import any_of
from tests.building.stalls import stall

from loopcanary.kinds.stall import StallKind
from loopcanary.model import StackFrame, Stall, WeightedStack
from loopcanary.wire import WireError, to_wire


def _stored(found: Stall) -> Any:
    return json.loads(json.dumps(StallKind().packed(found)))


def _frame(number: int) -> StackFrame:
    return StackFrame(
        function=f"f{number}", qualname=f"f{number}", file="/srv/app.py", line=number, in_app=True
    )


FRAMES = tuple(_frame(number) for number in range(40))
DEEP = stall(
    timeline=None,
    stacks=tuple(
        WeightedStack(weight_ns=number, frames=(_frame(number), *FRAMES), truncated=False)
        for number in range(100)
    ),
)


@given(any_of(Stall))
def test_a_stall_comes_back_as_it_was(found: Stall) -> None:
    assert StallKind().unpacked(_stored(found)) == found


def test_a_frame_that_stacks_share_is_written_once() -> None:
    packed = StallKind().packed(DEEP)

    assert len(packed["frames"]) == 100 + len(FRAMES)
    assert len(json.dumps(packed)) < len(json.dumps(to_wire(DEEP))) / 10
    assert StallKind().unpacked(_stored(DEEP)) == DEEP


def test_equal_frames_that_are_different_objects_come_back_equal() -> None:
    twice = stall(
        timeline=None, stacks=tuple(WeightedStack(weight_ns=1, frames=(_frame(7),)) for _ in range(2))
    )

    assert StallKind().unpacked(_stored(twice)) == twice


@pytest.mark.parametrize(
    "damage",
    [
        {"frames": None},
        {"frames": {}},
        {"stacks": None},
        {"stacks": [None]},
        {"stacks": [{"weight_ms": 1.0}]},
        {"stacks": [{"weight_ms": 1.0, "frames": 0}]},
        {"stacks": [{"weight_ms": 1.0, "frames": [-1]}]},
        {"stacks": [{"weight_ms": 1.0, "frames": [140]}]},
        {"stacks": [{"weight_ms": 1.0, "frames": [True]}]},
        {"stacks": [{"weight_ms": 1.0, "frames": ["0"]}]},
        {"stacks": [{"weight_ms": 1.0, "frames": [{}]}]},
        {"stacks": [{"weight_ms": 1.0, "frames": [0]}], "frames": [None]},
        {"stacks": [{"weight_ms": 1.0, "frames": [0]}], "frames": [{"function": 1}]},
    ],
    ids=json.dumps,
)
def test_what_is_damaged_is_refused(damage: dict[str, Any]) -> None:
    with pytest.raises(WireError):
        StallKind().unpacked({**_stored(DEEP), **damage})
