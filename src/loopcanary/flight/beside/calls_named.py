"""The numbers in files of calls, as functions and work with names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from loopcanary.flight.source import ByteSource, FlightError, open_source
from loopcanary.late_dataclass import dataclass
from loopcanary.model import StackFrame
from loopcanary.model.calls import TracedCall, TracedCalls, TracedWork
from loopcanary.model.method_map import METHODS, Method, records_in

_MAP_BYTES_MAX: Final = 64 << 20
_WORK_MAX: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class CallsInWindow:
    """The calls in a window, by number."""

    rows: Sequence[tuple[int, int, int, int, int, bool]]
    """Index of the row that it is in, or -1; number; calls; total and self in ns; whether one is open."""
    lost: int
    left_out: int
    left_out_ns: int
    work: Sequence[tuple[int, int, int]] = ()
    """Number of each work, how many times it ran, and its total in ns."""


def methods_of(flight: str) -> dict[int, Method]:
    """The map beside the flight file, by number."""
    try:
        source = open_source(flight + METHODS)
    except FlightError:
        return {}
    try:
        return methods_in(source)
    finally:
        source.close()


def methods_in(source: ByteSource) -> dict[int, Method]:
    """The methods of a map, by number. FlightError: it cannot be read."""
    content = source.read(0, min(source.size, _MAP_BYTES_MAX))
    return {method.number: method for method in records_in(content) if method.number}


def named(tree: CallsInWindow, methods: dict[int, Method], owns: Callable[[str], bool]) -> TracedCalls:
    """The calls in a window. `owns`: whether a file is the program's own code."""
    inside: dict[int, list[int]] = {}
    for index, row in enumerate(tree.rows):
        inside.setdefault(row[0], []).append(index)
    rows = []
    for index, depth in _in_order(inside):
        _, number, calls, total_ns, self_ns, is_open = tree.rows[index]
        frame = frame_of(methods.get(number), number, owns)
        rows.append(
            TracedCall(
                frame=frame, depth=depth, calls=calls, total_ns=total_ns, self_ns=self_ns, open=is_open
            )
        )
    return TracedCalls(
        rows=tuple(rows),
        lost=tree.lost,
        left_out=tree.left_out,
        left_out_ns=tree.left_out_ns,
        work=named_work(tree.work, methods),
    )


def named_work(work: Iterable[tuple[int, int, int]], methods: dict[int, Method]) -> tuple[TracedWork, ...]:
    """The longest, and the rest in one row without a name. `work`: number, times, total in ns."""
    ordered = sorted(work, key=lambda one: (one[0] not in methods, -one[2]))
    found = [
        TracedWork(name=name.qualname, task=name.file or None, times=times, total_ns=total_ns)
        for number, times, total_ns in ordered[:_WORK_MAX]
        if (name := methods.get(number)) is not None
    ]
    rest = ordered[len(found) :]
    if found and rest:
        times, total_ns = (sum(one[column] for one in rest) for column in (1, 2))
        found.append(TracedWork(name="", times=times, total_ns=total_ns))
    return tuple(found)


def _in_order(inside: dict[int, list[int]]) -> Iterator[tuple[int, int]]:
    """Each row's index and depth, before the rows inside it."""
    waiting = [(index, 0) for index in reversed(inside.get(-1, []))]
    while waiting:
        index, depth = waiting.pop()
        yield index, depth
        waiting.extend((inner, depth + 1) for inner in reversed(inside.get(index, [])))


def frame_of(method: Method | None, number: int, owns: Callable[[str], bool]) -> StackFrame:
    """The frame of a function; None: the map does not have it."""
    if method is None:
        return StackFrame(
            function=f"method {number}", qualname=f"method {number}", file="", line=0, in_app=False
        )
    name = method.qualname.rpartition(".")[2]
    return StackFrame(
        function=name, qualname=method.qualname, file=method.file, line=method.line, in_app=owns(method.file)
    )
