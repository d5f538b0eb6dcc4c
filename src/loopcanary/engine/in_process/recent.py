"""The last stalls of this process, for `canary.stalls`; what they have in common is held once."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeVar

from loopcanary.model import StackFrame, Stall

_T = TypeVar("_T")
_STALLS_MAX = 1_000
_FRAMES_MAX = 50_000
"""Frames in stacks of their own, of all stalls together: some 400 KB. A stall of code that computes has as
many stacks as samples, hundreds."""
_COMMON_MAX = 2_000


class Recent:
    """Bounded in stalls and in what they weigh; the oldest go first. The drain adds, any thread reads."""

    def __init__(self) -> None:
        self._stalls: deque[tuple[Stall, int]] = deque()
        self._frames = 0
        self._common: dict[Any, Any] = {}
        self._stacks: dict[tuple[int, ...], tuple[StackFrame, ...]] = {}
        """By the identities of their frames, which they keep alive."""

    def __iter__(self) -> Iterator[Stall]:
        """Oldest first."""
        return iter([stall for stall, _ in list(self._stalls)])

    def __len__(self) -> int:
        return len(self._stalls)

    def add(self, stall: Stall) -> None:
        if len(self._common) + len(self._stacks) > _COMMON_MAX:
            self._common.clear()
            self._stacks.clear()
        try:
            stall, frames = self._slim(stall)
        except TypeError:  # an interceptor has put in what cannot be compared by its hash
            frames = sum(len(stack.frames) for stack in stall.stacks)
        self._stalls.append((stall, frames))
        self._frames += frames
        while len(self._stalls) > _STALLS_MAX or (self._frames > _FRAMES_MAX and len(self._stalls) > 1):
            self._frames -= self._stalls.popleft()[1]

    def _slim(self, stall: Stall) -> tuple[Stall, int]:
        """The same stall, and how many frames stand in stacks that no other has."""
        own = 0
        held_frames: dict[int, StackFrame] = {}  # by identity: its stacks share frames, and hashes are slow

        def hold(frame: StackFrame) -> StackFrame:
            held = held_frames[id(frame)] = self._same(frame)
            return held

        def shared(frames: tuple[StackFrame, ...]) -> tuple[StackFrame, ...]:
            nonlocal own
            same = tuple([held_frames.get(id(frame)) or hold(frame) for frame in frames])
            held = self._stacks.setdefault(tuple(map(id, same)), same)
            if held is same:
                own += len(same)
            return held

        slim = replace(
            stall,
            stacks=tuple(replace(stack, frames=shared(stack.frames)) for stack in stall.stacks),
            threads=tuple(replace(view, frames=shared(view.frames)) for view in stall.threads),
            culprit=self._same(stall.culprit),
            blocker=self._same(stall.blocker),
            evidence=self._same(stall.evidence),
            advice=self._same(stall.advice),
        )
        return slim, own

    def _same(self, value: _T) -> _T:
        """An equal one that is held already."""
        held: _T = self._common.setdefault(value, value)
        return held
