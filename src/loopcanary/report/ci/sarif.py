"""SARIF 2.1.0 (OASIS standard, sarif-schema-2.1.0.json): what GitHub's code scanning and others read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from loopcanary.model import Severity
from loopcanary.report.ci.bugs import Bug, Spot

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ROOT = "SRCROOT"
_LEVELS = {Severity.STALL: "warning", Severity.HANG: "error", Severity.ANR: "error"}


def render(bugs: Sequence[Bug], *, version: str, has_baseline: bool) -> str:
    """A log of one run, a result a bug. `version`: ours. `has_baseline`: results say if they are new."""
    rules = {one.rule: one for one in bugs}
    numbers = {rule: number for number, rule in enumerate(rules)}
    driver = {
        "name": "loopcanary",
        "semanticVersion": version,
        "rules": [_rule(one) for one in rules.values()],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_ROOT: {"description": {"text": "The repository's root."}}},
        "results": [_result(one, numbers[one.rule], has_baseline) for one in bugs],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _rule(bug: Bug) -> dict[str, Any]:
    return {
        "id": bug.rule,
        "shortDescription": {"text": bug.rule_words},
        "defaultConfiguration": {"level": "warning"},
        "properties": {"tags": ["performance", "event-loop"]},
    }


def _result(bug: Bug, rule_index: int, has_baseline: bool) -> dict[str, Any]:
    result = {
        "ruleId": bug.rule,
        "ruleIndex": rule_index,
        "level": _LEVELS[bug.severity],
        "message": {"text": f"{bug.title}. {bug.words}"},
        "partialFingerprints": {"loopcanaryBug/v1": bug.fingerprint},
        "occurrenceCount": bug.count,
        "properties": {"totalMs": bug.total_ns / 1_000_000, "longestMs": bug.max_ns / 1_000_000},
        **dict(_places(bug)),
    }
    if has_baseline:
        result["baselineState"] = "unchanged" if bug.is_known else "new"
    return result


def _places(bug: Bug) -> Iterator[tuple[str, Any]]:
    if bug.spot is not None:
        yield "locations", [_location(bug.spot)]
    if bug.steps:
        steps = [{"location": _location(step, f"in {step.function}")} for step in bug.steps]
        yield "codeFlows", [{"threadFlows": [{"locations": steps}]}]


def _location(spot: Spot, words: str | None = None) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(spot.path), "uriBaseId": _ROOT}}
    if spot.line:
        region = {"startLine": spot.line}
        if spot.column and spot.end_column:
            region |= {"startColumn": spot.column, "endColumn": spot.end_column}
        physical["region"] = region
    location: dict[str, Any] = {
        "physicalLocation": physical,
        "logicalLocations": [{"fullyQualifiedName": spot.function, "kind": "function"}],
    }
    return location if words is None else {**location, "message": {"text": words}}


def _uri(path: str) -> str:
    from urllib.parse import quote

    return quote(path)
