"""Workflow commands of GitHub Actions: each bug is an annotation of its line.

Format and escapes: "Workflow commands for GitHub Actions", docs.github.com, and `command.ts` of
actions/toolkit. GitHub shows the first ten errors and ten warnings of a step: the worst come first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from loopcanary.model import Severity
from loopcanary.report.ci.bugs import Bug, Spot

_IN_TEXT = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_IN_PROPERTIES = str.maketrans({**_IN_TEXT, ":": "%3A", ",": "%2C"})
_TEXT = str.maketrans(_IN_TEXT)


def render(bugs: Sequence[Bug]) -> str:
    """A line a bug."""
    return "".join(f"{_annotation(one)}\n" for one in bugs)


def _annotation(bug: Bug) -> str:
    properties = [*_place(bug.spot), ("title", bug.title)]
    return f"::{_level(bug)} {_joined(properties)}::{bug.words.translate(_TEXT)}"


def _level(bug: Bug) -> str:
    if bug.is_known:
        return "notice"
    return "warning" if bug.severity is Severity.STALL else "error"


def _place(spot: Spot | None) -> list[tuple[str, str]]:
    if spot is None:
        return []
    place = [("file", spot.path)]
    if spot.line:
        place += [("line", str(spot.line)), ("endLine", str(spot.line))]
    if spot.column and spot.end_column:
        place += [("col", str(spot.column)), ("endColumn", str(spot.end_column - 1))]
    return place


def _joined(properties: Iterable[tuple[str, str]]) -> str:
    return ",".join(f"{key}={value.translate(_IN_PROPERTIES)}" for key, value in properties)
