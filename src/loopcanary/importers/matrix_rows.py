"""Matrix's call rows and its methodMapping.

A row is `depth,id,count,cost` in an issue's `stack`, or `..id count cost` in logcat, a dot a depth.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from loopcanary.protocols.imports import CodePlace, SeenCall

DISPATCH = (1 << 20) - 2
"""AppMethodBeat.METHOD_ID_DISPATCH."""
_ROW = re.compile(r"\s*(\d{1,4}),(\d{1,7}),(\d{1,9}),(\d{1,12})\s*", re.ASCII)
_DOTTED = re.compile(r"\s*(?:\|\*)?\s*(\.{0,400})(\d{1,7}) (\d{1,9}) (\d{1,12})\s*", re.ASCII)
_MAPPED = re.compile(r"(-?\d{1,7}),(\d{1,10}),([^\s,]{1,500}) ([^\s,]{1,300})(?: (\S{0,2000}))?\s*", re.ASCII)
_ROWS_MAX = 5_000
_METHODS_MAX = 2_000_000


def row_of(text: str) -> SeenCall | None:
    """None: it is no row."""
    if found := _ROW.fullmatch(text):
        depth, number, count, cost = map(int, found.groups())
        return SeenCall(depth, number, count, cost)
    if found := _DOTTED.fullmatch(text):
        return SeenCall(len(found[1]), int(found[2]), int(found[3]), int(found[4]))
    return None


def rows_of(stack: str) -> tuple[SeenCall, ...]:
    """The rows of an issue's `stack`; some tools write `|` for the ends of lines."""
    parts = re.split(r"\\n|[\n|]", stack, maxsplit=_ROWS_MAX)
    return tuple(row for part in parts[:_ROWS_MAX] if (row := row_of(part)) is not None)


def methods_of(lines: Iterable[str]) -> dict[int, CodePlace]:
    """The methods of a methodMapping by id: `id,access,class method desc`."""
    found: dict[int, CodePlace] = {}
    for line in lines:
        if (one := _MAPPED.fullmatch(line)) and len(found) < _METHODS_MAX:
            found.setdefault(int(one[1]), CodePlace(one[3], one[4], "", 0))
    return found


def is_mapping(lines: Iterable[str]) -> bool:
    """Whether the text is a methodMapping: its first 20 lines are nothing else."""
    some = [line for _, line in zip(range(20), (line for line in lines if line.strip()), strict=False)]
    kept = [line for line in some if not line.startswith("#")]
    return bool(kept) and all(_MAPPED.fullmatch(line) for line in kept)
