"""JSON lines: each stall as the report has it (docs/internals/report-schema.md), and the program's name."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from loopcanary.exporters.formats import Format
from loopcanary.exporters.texts import encoded
from loopcanary.wire import to_wire

if TYPE_CHECKING:
    from loopcanary.exporters.source import Exported


def write(exported: Exported, out: IO[bytes]) -> None:
    """One object a line, in ASCII."""
    for stall in exported.stalls:
        line = encoded({"program": exported.program(stall).name, **to_wire(stall)})
        out.write(line.encode("ascii") + b"\n")


FORMAT = Format(name="jsonl", write=write, opened_by="jq, DuckDB, log shippers")
