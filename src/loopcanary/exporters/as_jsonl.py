"""JSON lines: each issue as the report has it (docs/internals/report-schema.md), and the program's name."""

from __future__ import annotations

from typing import IO

from loopcanary.exporters import Exported, Format
from loopcanary.exporters.texts import encoded
from loopcanary.wire import to_wire


def write(exported: Exported, out: IO[bytes]) -> None:
    for issue in exported.all():
        line = encoded({"program": exported.program(issue).name, **to_wire(issue)})
        out.write(line.encode("ascii") + b"\n")


FORMAT = Format(name="jsonl", write=write, takes_issues=True)
