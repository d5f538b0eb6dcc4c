"""A stall as its payload holds it: as the contract's JSON, but each frame of its stacks once.

A stall of code that computes has hundreds of stacks of dozens of frames, which are a hundred different ones.
Written out they are 640 KB and most of what storing a stall costs the watched process; by number they are 30.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loopcanary.model import StackFrame, Stall, WeightedStack
from loopcanary.wire import WireError, from_wire, to_wire

if TYPE_CHECKING:
    from collections.abc import Sequence


def pack(stall: Stall) -> dict[str, Any]:
    """The stall as a JSON-able dict: in `stacks`, frames are numbers of those in `frames`."""
    table = _Frames()
    packed = to_wire(replace(stall, stacks=()))
    packed["stacks"] = [
        {**to_wire(replace(stack, frames=())), "frames": table.numbers(stack.frames)}
        for stack in stall.stacks
    ]
    packed["frames"] = [to_wire(frame) for frame in table.frames]
    return packed


def unpack(packed: object) -> Stall:
    """The stall that was packed. Equal frames are one object. WireError."""
    if not isinstance(packed, dict):
        raise WireError("stall: an object is wanted")
    frames = [from_wire(StackFrame, frame, "stall.frames") for frame in _list(packed, "frames")]
    stacks = [_stack(stack, frames) for stack in _list(packed, "stacks")]
    return from_wire(Stall, {**packed, "stacks": stacks})


class _Frames:
    """Numbers frames, each object once: stacks share theirs."""

    def __init__(self) -> None:
        self.frames: list[StackFrame] = []
        self._numbers: dict[int, int] = {}

    def numbers(self, frames: Sequence[StackFrame]) -> list[int]:
        """The numbers of the frames of a stack."""
        known = self._numbers
        try:
            return [known[id(frame)] for frame in frames]
        except KeyError:
            for frame in frames:
                if id(frame) not in known:
                    known[id(frame)] = len(self.frames)
                    self.frames.append(frame)
            return [known[id(frame)] for frame in frames]


def _list(packed: dict[Any, Any], name: str) -> list[Any]:
    value = packed.get(name)
    if not isinstance(value, list):
        raise WireError(f"stall.{name}: a list is wanted")
    return value


def _stack(packed: object, frames: list[StackFrame]) -> WeightedStack:
    if not isinstance(packed, dict):
        raise WireError("stall.stacks: objects are wanted")
    numbers = _list(packed, "frames")
    for number in set(map(type, numbers)):
        if number is not int:
            raise WireError(f"stall.stacks.frames: numbers are wanted, not {number.__name__}")
    if numbers and not 0 <= min(numbers) <= max(numbers) < len(frames):
        raise WireError("stall.stacks.frames: there is no such frame")
    named = [frames[number] for number in numbers]
    return from_wire(WeightedStack, {**packed, "frames": named}, "stall.stacks")
