"""A stall as its payload holds it: as the contract's JSON, but each frame of its stacks once.

A stall of code that computes has hundreds of stacks of dozens of frames, which are a hundred different ones.
Written out they are 640 KB and most of what storing a stall costs the watched process; by number they are 30.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loopcanary.model.wire import WireError, stall_from_dict, stall_to_dict
from loopcanary.model.wire_fields import ms
from loopcanary.model.wire_pieces import frame_to_dict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopcanary.model import StackFrame, Stall


def pack(stall: Stall) -> dict[str, Any]:
    """The stall as a JSON-able dict: in `stacks`, frames are numbers of those in `frames`."""
    table = _Frames()
    packed = stall_to_dict(replace(stall, stacks=()))
    packed["stacks"] = [
        {
            "weight_ms": ms(stack.weight_ns),
            "truncated": stack.truncated,
            "frames": table.numbers(stack.frames),
        }
        for stack in stall.stacks
    ]
    packed["frames"] = [frame_to_dict(frame) for frame in table.frames]
    return packed


def unpack(packed: object) -> Stall:
    """The stall that was packed; also one whose frames are written out, as all once were. WireError."""
    if isinstance(packed, dict) and "frames" in packed:
        packed = {**packed, "stacks": _written_out(packed.get("stacks"), packed["frames"])}
    return stall_from_dict(packed)


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


def _written_out(stacks: object, frames: object) -> object:
    if not isinstance(stacks, list) or not isinstance(frames, list):
        raise WireError("stall.stacks: lists of stacks and frames are wanted")
    return [{**stack, "frames": _frames_of(stack.get("frames"), frames)} for stack in map(_object, stacks)]


def _object(stack: object) -> dict[str, Any]:
    if not isinstance(stack, dict):
        raise WireError("stall.stacks: objects are wanted")
    return stack


def _frames_of(numbers: object, frames: list[Any]) -> list[Any]:
    if not isinstance(numbers, list):
        raise WireError("stall.stacks.frames: a list is wanted")
    for number in set(map(type, numbers)):
        if number is not int:
            raise WireError(f"stall.stacks.frames: numbers are wanted, not {number.__name__}")
    if numbers and not 0 <= min(numbers) <= max(numbers) < len(frames):
        raise WireError("stall.stacks.frames: there is no such frame")
    return [frames[number] for number in numbers]
