"""Circles of those who wait for each other."""

from __future__ import annotations

from collections.abc import Mapping


def circles(waits_for: Mapping[int, int]) -> list[tuple[int, ...]]:
    """Each circle once: those who wait, in the order in which they wait for each other."""
    found: list[tuple[int, ...]] = []
    seen: set[int] = set()
    for start in waits_for:
        path: dict[int, int] = {}
        at: int | None = start
        while at is not None and at not in seen:
            seen.add(at)
            path[at] = len(path)
            at = waits_for.get(at)
        if at in path:
            found.append(tuple(path)[path[at] :])
    return found
