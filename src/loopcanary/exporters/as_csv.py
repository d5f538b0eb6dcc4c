"""CSV (RFC 4180, with a heading): one line a stall."""

from __future__ import annotations

import csv
import io
from typing import IO, Any

from loopcanary.exporters import Exported, Format
from loopcanary.exporters.texts import whole
from loopcanary.model import Stall
from loopcanary.wire import time_to_text

COLUMNS = (
    *("id", "fingerprint", "session", "program", "pid", "thread", "loop", "scene", "callback", "task"),
    *("title", "scope", "state", "severity", "began_at", "duration_ms", "threshold_ms", "queue_ms"),
    *("cause", "confidence", "second_cause", "grade", "culprit", "file", "line", "in_app", "source"),
    *("blocker", "holder", "waited_on", "on_cpu_ms", "gil_wait_ms", "run_queue_ms", "blocked_ms", "gc_ms"),
    *("samples", "coverage", "startup", "advice"),
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""A spreadsheet runs a cell that begins so (OWASP, CSV injection)."""


def write(exported: Exported, out: IO[bytes]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for stall in exported.stalls:
        cells = _cells(stall, exported.program(stall).name)
        writer.writerow([_cell(cells[column]) for column in COLUMNS])
        out.write(text.getvalue().encode("utf-8"))
        text.seek(0)
        text.truncate()
    out.write(text.getvalue().encode("utf-8"))


def _cell(value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return value
    text = whole(value).replace("\0", "\\0")  # readers in C end there
    return f"'{text}" if text.startswith(_FORMULA) else text


def _cells(stall: Stall, program: str) -> dict[str, Any]:
    culprit, ledger, blocker = stall.culprit, stall.ledger, stall.blocker
    return {
        **{name: getattr(stall, name, None) for name in COLUMNS},
        **{name: getattr(stall, name).value for name in ("scope", "state", "severity", "cause", "grade")},
        "program": program,
        "began_at": time_to_text(stall.began_wall_ns),
        **{f"{name}_ms": _ms(getattr(stall, f"{name}_ns")) for name in ("duration", "threshold", "queue")},
        "second_cause": None if stall.second_cause is None else stall.second_cause.value,
        "culprit": None if culprit is None else culprit.qualname,
        **{name: getattr(culprit, name, None) for name in ("file", "line", "in_app", "source")},
        "blocker": None if blocker is None else blocker.call or blocker.function,
        "holder": None if stall.holder is None else stall.holder.thread,
        "waited_on": None if stall.waited_on is None else stall.waited_on.name,
        **{
            f"{name}_ms": _ms(getattr(ledger, f"{name}_ns"))
            for name in ("on_cpu", "gil_wait", "run_queue", "blocked", "gc")
        },
    }


def _ms(ns: int | None) -> float | None:
    return None if ns is None else ns / 1_000_000


FORMAT = Format(name="csv", write=write)
