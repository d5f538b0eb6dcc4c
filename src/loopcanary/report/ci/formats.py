"""The formats of CI systems, by name."""

from __future__ import annotations

from collections.abc import Sequence

from loopcanary.report.ci import github, gitlab, junit, sarif
from loopcanary.report.ci.bugs import Bug


def render(form: str, bugs: Sequence[Bug], *, version: str, has_baseline: bool) -> str:
    """The bugs as `github`, `sarif`, `gitlab` or `junit`. KeyError: none of these."""
    if form == "sarif":
        return sarif.render(bugs, version=version, has_baseline=has_baseline)
    return {"github": github.render, "gitlab": gitlab.render, "junit": junit.render}[form](bugs)
