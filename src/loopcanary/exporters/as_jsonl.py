"""JSON lines: each issue as the report has it (docs/internals/report-schema.md), and the program's name."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import IO

from loopcanary.exporters.formats import Format
from loopcanary.exporters.source import Exported
from loopcanary.exporters.texts import encoded
from loopcanary.model import Issue
from loopcanary.wire import to_wire


def write(exported: Exported, out: IO[bytes]) -> None:
    """One object a line, in ASCII."""
    issues: Iterator[Issue] = chain(exported.stalls, exported.issues)
    for issue in issues:
        line = encoded({"program": exported.program(issue).name, **to_wire(issue)})
        out.write(line.encode("ascii") + b"\n")


FORMAT = Format(name="jsonl", write=write, takes_issues=True)
