"""A comparison as JSON: docs/internals/report-schema.md, diff-schema-1.json."""

from __future__ import annotations

from math import isinf

from loopcanary.report.as_json import render_members
from loopcanary.report.diff.comparison import Compared, Comparison, SideSums
from loopcanary.report.diff.starts import ComparedStart, Times
from loopcanary.report.figures.rates import LEVEL, Amount, Interval
from loopcanary.wire import Json, time_to_text, to_wire

SCHEMA_VERSION = 1
_MS = 1_000_000


def comparison_to_dict(comparison: Comparison, limit: int = 0) -> Json:
    return {
        "schema": SCHEMA_VERSION,
        "generated_at": time_to_text(comparison.generated_wall_ns),
        "level": LEVEL,
        "before": _side_to_dict(comparison.before),
        "after": _side_to_dict(comparison.after),
        "counts": {change.value: count for change, count in comparison.counts.items()},
        "groups": [_group_to_dict(one) for one in comparison.groups[: limit or None]],
        "starts": [_start_to_dict(one) for one in comparison.starts],
    }


def render(comparison: Comparison, limit: int = 0) -> str:
    return render_members(comparison_to_dict(comparison, limit))


def _side_to_dict(side: SideSums) -> Json:
    return {
        "label": side.label,
        "sessions": side.sessions,
        "watched_hours": side.hours,
        "stalls": side.stalls,
        "stalled_s": side.stalled_s,
        "callbacks_per_s": side.callbacks_per_s,
    }


def _group_to_dict(one: Compared) -> Json:
    return {
        "fingerprint": one.fingerprint,
        "title": one.title,
        "cause": one.cause.value,
        "culprit": None if one.culprit is None else to_wire(one.culprit),
        "change": one.change.value,
        "sure": one.is_sure,
        "before": _seen_to_dict(one.before, one.before_range),
        "after": _seen_to_dict(one.after, one.after_range),
        "ratio": _interval_to_dict(one.ratio),
    }


def _start_to_dict(one: ComparedStart) -> Json:
    return {
        "program": one.program,
        "start": one.start.value,
        "sure": one.is_sure,
        "before": _times_to_dict(one.before),
        "after": _times_to_dict(one.after),
        "imports": [
            {"name": found.name, "before_ms": found.before_ns / _MS, "after_ms": found.after_ns / _MS}
            for found in one.imports
        ],
    }


def _times_to_dict(times: Times) -> Json:
    return {
        "count": times.count,
        "median_ms": times.median_ns / _MS,
        "min_ms": times.least_ns / _MS,
        "max_ms": times.most_ns / _MS,
    }


def _seen_to_dict(seen: Amount, bounds: Interval) -> Json:
    return {
        "watched_hours": seen.hours,
        "count": seen.count,
        "stalls_per_hour": seen.count_per_hour,
        "stalled_s": seen.total,
        "stalled_s_per_hour": {"value": seen.per_hour, **_interval_to_dict(bounds)},
    }


def _interval_to_dict(bounds: Interval) -> Json:
    return {"low": bounds.low, "high": None if isinf(bounds.high) else bounds.high}
