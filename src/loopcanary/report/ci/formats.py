"""Bugs in the formats of CI systems: GitHub's annotations, JUnit's XML, SARIF 2.1.0."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree as ET

from loopcanary.model import Severity
from loopcanary.report.ci.bugs import Bug, Spot

_IN_TEXT = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_IN_PROPERTIES = str.maketrans({**_IN_TEXT, ":": "%3A", ",": "%2C"})
_TEXT = str.maketrans(_IN_TEXT)


def github_commands(bugs: Sequence[Bug]) -> str:
    """Workflow commands of GitHub Actions: an annotation of its line for each bug.

    Format and escapes: "Workflow commands for GitHub Actions", docs.github.com, and `command.ts` of
    actions/toolkit. GitHub shows the first ten errors and ten warnings of a step: the worst come first.
    """
    return "".join(f"{_annotation(one)}\n" for one in bugs)


def _annotation(bug: Bug) -> str:
    properties = [*_annotation_place(bug.spot), ("title", bug.title)]
    joined = ",".join(f"{key}={value.translate(_IN_PROPERTIES)}" for key, value in properties)
    level = "notice" if bug.is_known else "warning" if bug.severity is Severity.STALL else "error"
    return f"::{level} {joined}::{bug.words.translate(_TEXT)}"


def _annotation_place(spot: Spot | None) -> list[tuple[str, str]]:
    if spot is None:
        return []
    place = [("file", spot.path)]
    if spot.line:
        place += [("line", str(spot.line)), ("endLine", str(spot.line))]
    if spot.column and spot.end_column:
        place += [("col", str(spot.column)), ("endColumn", str(spot.end_column - 1))]
    return place


_NS_PER_S = 1_000_000_000


def junit_xml(bugs: Sequence[Bug]) -> str:
    """A case for each bug, with its figures as properties; a bug of the baseline passes.

    There is no standard: this is what Jenkins and GitLab read, as github.com/testmoapp/junitxml describes it.
    """
    failures = sum(not one.is_known for one in bugs)
    counts = {"tests": str(len(bugs)), "failures": str(failures), "errors": "0"}
    root = ET.Element("testsuites", counts)
    suite = ET.SubElement(root, "testsuite", {"name": "loopcanary", **counts})
    for one in bugs:
        _add(suite, one)
    ET.indent(root, " ")
    return ET.tostring(root, encoding="unicode", xml_declaration=False) + "\n"


def _add(suite: ET.Element, bug: Bug) -> None:
    spot = bug.spot
    place = {} if spot is None else {"file": spot.path, "line": str(spot.line)}
    name = {"classname": f"loopcanary.{bug.rule}", "name": f"{bug.title} [{bug.fingerprint}]"}
    seconds = {"time": f"{bug.max_ns / _NS_PER_S:.6f}"}
    case = ET.SubElement(suite, "testcase", {**name, **place, **seconds})
    properties = ET.SubElement(case, "properties")
    for key, value in _properties(bug):
        ET.SubElement(properties, "property", {"name": f"loopcanary.{key}", "value": value})
    if not bug.is_known:
        failure = ET.SubElement(case, "failure", {"message": bug.details, "type": bug.rule})
        failure.text = "\n".join(_lines(bug))


def _properties(bug: Bug) -> Iterator[tuple[str, str]]:
    yield "fingerprint", bug.fingerprint
    yield "severity", bug.severity.value
    yield "count", str(bug.count)
    yield "total_ms", f"{bug.total_ns / 1_000_000:.3f}"
    yield "max_ms", f"{bug.max_ns / 1_000_000:.3f}"


def _lines(bug: Bug) -> Iterator[str]:
    for step in bug.steps:
        yield f"{step.path}:{step.line} in {step.function}"
    yield bug.words


_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ROOT = "SRCROOT"
_LEVELS = {Severity.STALL: "warning", Severity.HANG: "error", Severity.ANR: "error"}


def sarif_log(bugs: Sequence[Bug], *, version: str, has_baseline: bool) -> str:
    """SARIF 2.1.0 (OASIS standard), which GitHub's code scanning reads: a result for each bug.

    `version` is ours; with a baseline each result says whether it is new.
    """
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
    physical: dict[str, Any] = {"artifactLocation": {"uri": quote(spot.path), "uriBaseId": _ROOT}}
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


def render(form: str, bugs: Sequence[Bug], *, version: str, has_baseline: bool) -> str:
    if form == "sarif":
        return sarif_log(bugs, version=version, has_baseline=has_baseline)
    return {"github": github_commands, "junit": junit_xml}[form](bugs)
