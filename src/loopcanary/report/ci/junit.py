"""JUnit's XML: a case a bug, with its figures as properties; a bug that the baseline has passes.

There is no standard: this is what Jenkins and GitLab read, as github.com/testmoapp/junitxml describes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.etree import ElementTree as ET

from loopcanary.report.ci.bugs import Bug

_NS_PER_S = 1_000_000_000


def render(bugs: Sequence[Bug]) -> str:
    """A document with one suite."""
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
