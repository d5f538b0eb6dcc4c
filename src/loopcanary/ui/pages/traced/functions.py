"""Traced calls by function: where the time went, by whatever path it was called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from loopcanary.model import StackFrame
from loopcanary.model.calls import TracedCall


def by_function(calls: Sequence[TracedCall]) -> list[TracedCall]:
    """All calls of a function as one; of functions with time of their own, largest first.

    `total_ns`: of calls inside another one of the same function only the outer ones count.
    """
    count: Counter[StackFrame] = Counter()
    total_ns: Counter[StackFrame] = Counter()
    self_ns: Counter[StackFrame] = Counter()
    around: list[TracedCall] = []
    inside: Counter[StackFrame] = Counter()
    for call in calls:
        while around and around[-1].depth >= call.depth:
            inside[around.pop().frame] -= 1
        frame = call.frame
        count[frame] += call.calls
        self_ns[frame] += call.self_ns
        total_ns[frame] += 0 if inside[frame] else call.total_ns
        inside[frame] += 1
        around.append(call)
    functions = [
        TracedCall(frame=frame, depth=0, calls=count[frame], total_ns=total_ns[frame], self_ns=self_ns[frame])
        for frame in count
        if self_ns[frame] > 0
    ]
    return sorted(functions, key=lambda one: (-one.self_ns, -one.total_ns))
