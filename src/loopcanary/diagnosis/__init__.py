"""The diagnosis: from the evidence of a stall to a verdict.

Pure: no clock is read, nothing is written. The one thing looked at besides the arguments is source text,
through a SourceReader. docs/internals/diagnosis.md explains every word and formula.
"""

from __future__ import annotations

from loopcanary.diagnosis.advice import registered
from loopcanary.diagnosis.causes import rules
from loopcanary.diagnosis.code.code_paths import CodePaths
from loopcanary.diagnosis.code.sources import FileSources, SourceLines, SourceReader
from loopcanary.diagnosis.filters import drop_reason
from loopcanary.diagnosis.fingerprint import explain
from loopcanary.diagnosis.health.loop import loop_health
from loopcanary.diagnosis.health.pools import process_health
from loopcanary.diagnosis.judgement import diagnose, not_intercepted

__all__ = [
    "CodePaths",
    "FileSources",
    "SourceLines",
    "SourceReader",
    "diagnose",
    "drop_reason",
    "explain",
    "loop_health",
    "not_intercepted",
    "prepare",
    "process_health",
]


def prepare() -> None:
    """Loads the registered rules and remedies, which the first verdict would load else."""
    rules()
    registered()
