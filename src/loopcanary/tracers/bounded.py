"""The form on the wire of an issue that a tracer reports, with lists and texts of a bounded length.

It is made in the program, where nothing is loaded that judges."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import islice
from typing import Any

from loopcanary.model.issues.facts import IssueFacts
from loopcanary.wire import to_wire

TEXT_MAX = 500
"""Longer names are cut: a path is no longer as a rule, and a title never should be."""
LIST_MAX = 5_000
"""Of longer ones only the beginning is looked at; `left_out`, where a kind has it, counts the rest."""


def wire_of(issue: Any) -> Any:
    """Its form on the wire, with lists and texts of a bounded length. TypeError: it is not an issue."""
    if not isinstance(issue, IssueFacts):
        raise TypeError(f"a tracer reports issues of registered kinds, not {type(issue).__name__}")
    return _cut(to_wire(_bounded(issue)))


def _bounded(issue: IssueFacts) -> IssueFacts:
    """The issue with the begin of its long lists, before anything goes through the whole of them; `left_out`
    counts the entries of its own lists that this leaves out."""
    begins: dict[str, Any] = {}
    beyond = 0
    for field in fields(issue):
        if str(field.type).startswith("tuple["):
            some = getattr(issue, field.name)
            begins[field.name] = tuple(islice(some, LIST_MAX))
            if field.name not in ("stalls", "stacks") and hasattr(some, "__len__"):
                beyond += max(len(some) - LIST_MAX, 0)
    if hasattr(issue, "left_out"):
        begins["left_out"] = max(issue.left_out, 0) + beyond
    return replace(issue, **begins)


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return value[:TEXT_MAX]
    if isinstance(value, list):
        return [_cut(one) for one in value[:LIST_MAX]]
    if isinstance(value, dict):
        return {key: _cut(one) for key, one in value.items()}
    return value
