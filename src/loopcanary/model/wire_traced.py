"""What only starts and slow methods have, as JSON-able dicts and back; see model.wire."""

from __future__ import annotations

from typing import Any

from loopcanary.model.issues.slow_method import CallRow, SlowMethod
from loopcanary.model.issues.startup import Phase, PhaseKind, StartKind, Startup
from loopcanary.model.wire_fields import Fields, Json, ms
from loopcanary.model.wire_pieces import frame_of, frame_to_dict


def startup_to_dict(start: Startup) -> Json:
    """A start's own fields."""
    return {
        "start": start.start.value,
        "program": start.program,
        "threshold_ms": ms(start.threshold_ns),
        "phases": [
            {
                "kind": phase.kind.value,
                "name": phase.name,
                "depth": phase.depth,
                "offset_ms": ms(phase.offset_ns),
                "duration_ms": ms(phase.duration_ns),
                "self_ms": ms(phase.self_ns),
            }
            for phase in start.phases
        ],
        "left_out": start.left_out,
    }


def startup_of(fields: Fields, common: dict[str, Any]) -> Startup:
    """The start with these fields, and what all issues have. Raises WireError."""
    return Startup(
        start=fields.choice("start", StartKind, StartKind.UNKNOWN.value),
        program=fields.text("program", ""),
        threshold_ns=fields.ns("threshold_ms"),
        phases=fields.many("phases", _phase),
        left_out=fields.integer("left_out", 0),
        **common,
    )


def _phase(fields: Fields) -> Phase:
    return Phase(
        kind=fields.choice("kind", PhaseKind, PhaseKind.OTHER.value),
        name=fields.text("name", ""),
        depth=fields.integer("depth", 0),
        offset_ns=fields.ns("offset_ms"),
        duration_ns=fields.ns("duration_ms"),
        self_ns=fields.ns("self_ms"),
    )


def slow_method_to_dict(slow: SlowMethod) -> Json:
    """A slow method's own fields."""
    return {
        "threshold_ms": ms(slow.threshold_ns),
        "rows": [
            {
                **frame_to_dict(row.frame),
                "depth": row.depth,
                "count": row.count,
                "total_ms": ms(row.total_ns),
                "self_ms": ms(row.self_ns),
                "is_dispatch": row.is_dispatch,
            }
            for row in slow.rows
        ],
        "left_out": slow.left_out,
        "left_out_ms": ms(slow.left_out_ns),
        "key": slow.key,
    }


def slow_method_of(fields: Fields, common: dict[str, Any]) -> SlowMethod:
    """The slow method with these fields, and what all issues have. Raises WireError."""
    return SlowMethod(
        threshold_ns=fields.ns("threshold_ms"),
        rows=fields.many("rows", _row),
        left_out=fields.integer("left_out", 0),
        left_out_ns=fields.ns("left_out_ms", 0.0),
        key=fields.optional_integer("key"),
        **common,
    )


def _row(fields: Fields) -> CallRow:
    return CallRow(
        frame=frame_of(fields),
        depth=fields.integer("depth", 0),
        count=fields.integer("count", 1),
        total_ns=fields.ns("total_ms"),
        self_ns=fields.ns("self_ms"),
        is_dispatch=fields.flag("is_dispatch", False),
    )
