"""The report as JSON: contract 7.3 of the design, docs/report-schema.md, report-schema-1.json."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING

from loopcanary.model.wire import (
    SCHEMA_VERSION,
    Json,
    culprit_to_dict,
    session_to_dict,
    stall_to_dict,
    time_to_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loopcanary.model.search import StallGroup
    from loopcanary.report.model import Report


def report_to_dict(report: Report) -> Json:
    """The report as a JSON-able dict."""
    ids = defaultdict(list)
    for stall in report.stalls:
        ids[stall.fingerprint].append(stall.id)
    return {
        "schema": SCHEMA_VERSION,
        "generated_at": time_to_text(report.generated_wall_ns),
        "totals": {
            "stalls": report.sums.stalls,
            "groups": report.sums.groups,
            "total_ms": report.sums.total_ns / 1_000_000,
        },
        "sessions": [session_to_dict(session) for session in report.sessions],
        "groups": [_group_to_dict(group, ids[group.fingerprint]) for group in report.groups],
        "stalls": [stall_to_dict(stall) for stall in report.stalls],
        "issues": [],
    }


def render(report: Report) -> str:
    """The report as ASCII text, one line an entry: no name in it can trouble a terminal, a log or a page."""
    return "{\n" + ",\n".join(_members(report_to_dict(report))) + "\n}\n"


def _members(report: Json) -> Iterator[str]:
    for key, value in report.items():
        if isinstance(value, list) and value:
            entries = ",\n".join(_encoded(entry) for entry in value)
            yield f"{_encoded(key)}: [\n{entries}\n]"
        else:
            yield f"{_encoded(key)}: {_encoded(value)}"


def _encoded(value: object) -> str:
    # No indent: with one, json leaves its C encoder and takes ten times as long.
    text = json.dumps(value, allow_nan=False)
    # `<` is escaped, since reports are embedded in pages, where `</script>` would end the data.
    return text.replace("<", "\\u003c").replace("\x7f", "\\u007f")


def _group_to_dict(group: StallGroup, stall_ids: list[str]) -> Json:
    return {
        "fingerprint": group.fingerprint,
        "kind": group.kind.value,
        "title": group.title,
        "cause": group.cause.value,
        "count": group.count,
        "total_ms": group.total_ns / 1_000_000,
        "p50_ms": group.p50_ns / 1_000_000,
        "max_ms": group.max_ns / 1_000_000,
        "first_at": time_to_text(group.first_wall_ns),
        "last_at": time_to_text(group.last_wall_ns),
        "culprit": None if group.culprit is None else culprit_to_dict(group.culprit),
        "worst_id": group.worst_id,
        "stall_ids": stall_ids,
    }
