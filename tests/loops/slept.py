"""Which stall is which, of a program that says when it slept: by time, whatever the machine added to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tests.program.watching import wall_ns


def by_sleep(report: Mapping[str, Any], slept: Iterable[tuple[str, int]]) -> dict[str, Mapping[str, Any]]:
    """For each (function, wall clock's nanoseconds in the middle of its sleep) the stall that was then."""
    found = {}
    for function, middle_ns in slept:
        (found[function],) = [each for each in report["stalls"] if is_at(each, middle_ns)]
        if found[function]["cause"] == "sleep":  # else the machine has the greater part
            assert function in _functions_of(found[function])
    return found


def _functions_of(stall: Mapping[str, Any]) -> set[str]:
    return {frame["function"] for stack in stall["stacks"] for frame in stack["frames"]}


def is_at(stall: Mapping[str, Any], moment_ns: int) -> bool:
    begin_ns = wall_ns(stall["began_at"])
    return begin_ns < moment_ns < begin_ns + stall["duration_ms"] * 1e6
