"""How a stall lies in the store: each frame once, and nothing of it lost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from tests.store.samples import any_of, stall

from loopcanary.model import StackFrame, Stall, WeightedStack
from loopcanary.store.packing import pack, unpack
from loopcanary.wire import WireError, to_wire


def _stored(found: Stall) -> Any:
    return json.loads(json.dumps(pack(found)))


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
    assert unpack(_stored(found)) == found


def test_a_frame_that_stacks_share_is_written_once() -> None:
    packed = pack(DEEP)

    assert len(packed["frames"]) == 100 + len(FRAMES)
    assert len(json.dumps(packed)) < len(json.dumps(to_wire(DEEP))) / 10
    assert unpack(_stored(DEEP)) == DEEP


def test_equal_frames_that_are_different_objects_come_back_equal() -> None:
    twice = stall(
        timeline=None, stacks=tuple(WeightedStack(weight_ns=1, frames=(_frame(7),)) for _ in range(2))
    )

    assert unpack(_stored(twice)) == twice


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
        unpack({**_stored(DEEP), **damage})
