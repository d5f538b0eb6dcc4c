"""GitLab's code quality report: docs.gitlab.com, "Code Quality", "Code Quality report format".

Every entry has a line there: a bug whose line is not known, or lies outside the repository, is left out.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from loopcanary.model import Severity
from loopcanary.report.ci.bugs import Bug, Spot

_SEVERITIES = {Severity.STALL: "minor", Severity.HANG: "major", Severity.ANR: "critical"}


def render(bugs: Sequence[Bug]) -> str:
    """A JSON list, an entry a bug."""
    entries = [_entry(one, one.spot) for one in bugs if one.spot is not None]
    return json.dumps(entries, indent=1) + "\n"


def _entry(bug: Bug, spot: Spot) -> dict[str, object]:
    return {
        "description": f"{bug.title}. {bug.words}",
        "check_name": f"loopcanary/{bug.rule}",
        "fingerprint": bug.fingerprint,
        "severity": "info" if bug.is_known else _SEVERITIES[bug.severity],
        "location": {"path": spot.path, "lines": {"begin": max(1, spot.line)}},
    }
