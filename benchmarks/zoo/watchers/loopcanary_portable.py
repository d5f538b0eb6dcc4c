"""loopcanary's portable engine: pure Python, for where the C core cannot be."""

from __future__ import annotations

from collections.abc import Sequence

from zoo.observation import Report
from zoo.watchers import Run, loopcanary

PACKAGE = "loopcanary"
ENGINE = "portable"


def command(run: Run) -> list[str]:
    """`loopcanary run` with the engine named."""
    return loopcanary.run_by(run, ENGINE)


def reports(run: Run) -> Sequence[Report]:
    """What `loopcanary report` says, also of a killed program."""
    return loopcanary.reports_by(run, ENGINE)
