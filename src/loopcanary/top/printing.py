"""Rows as text, and as JSON with the fields of docs/how-to/top.md, which are added to, never renamed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final

from loopcanary.model.stall import Stall
from loopcanary.top.columns import COLUMNS, NOTHING, TableColumn, fitted, fitting, headline
from loopcanary.top.rows import Delays, LaneRow
from loopcanary.wire import Json, time_to_text, to_wire
from loopcanary.words.text import display_width


def lines(rows: Sequence[LaneRow], hidden: int, width: int | None) -> Iterator[str]:
    """A head, and a line for each row, for a terminal of this width; None: every column in full width."""
    if not rows and not hidden:
        yield from NOTHING
        return
    yield headline(rows, hidden)
    if not rows:
        return
    table = _whole(rows) if width is None else fitting(width)
    yield " ".join(fitted(column.heading, size, to_right=column.to_right) for column, size in table).rstrip()
    for row in rows:
        cells = (fitted(column.cell(row)[0], size, to_right=column.to_right) for column, size in table)
        yield " ".join(cells).rstrip()


def _whole(rows: Sequence[LaneRow]) -> list[tuple[TableColumn, int]]:
    return [
        (
            column,
            max(display_width(text) for text in (column.heading, *(column.cell(row)[0] for row in rows))),
        )
        for column in COLUMNS
    ]


SCHEMA: Final = 1


def render(rows: Sequence[LaneRow], now_wall_ns: int) -> str:
    whole = {
        "schema": SCHEMA,
        "taken_at": time_to_text(now_wall_ns),
        "loops": [row_to_dict(row) for row in rows],
    }
    return json.dumps(whole, indent=2) + "\n"


def row_to_dict(row: LaneRow) -> Json:
    work = row.work
    return {
        "pid": row.pid,
        "program": row.program,
        "session": row.session.id,
        "python": row.session.python,
        "loop": row.loop_kind,
        "thread": row.thread,
        "tid": row.tid,
        "state": row.state.value,
        "state_ms": _ms(row.state_ns),
        "threshold_ms": _ms(row.threshold_ns),
        "utilization": {"now": row.utilization_now, "total": row.utilization},
        "delay_ms": {"now": _delays(row.delay_now), "total": _delays(row.delay)},
        "callbacks_per_s": row.callbacks_per_s,
        "callback": None if work is None else work.callback,
        "task": None if work is None else work.task,
        "scene": None if work is None else work.scene,
        "running_ms": _ms(row.work_ns),
        "stalls": row.stalls,
        "stalled_ms": _ms(row.stalled_ns),
        "latest_stall_ms": _ms(row.latest_stall_ns),
        "last_stall": None if row.last is None else _last(row.last),
        "store": row.store,
    }


def _ms(ns: int | None) -> float | None:
    return None if ns is None else ns / 1_000_000


def _delays(delays: Delays | None) -> Json | None:
    return None if delays is None else {"p50": _ms(delays.p50_ns), "p99": _ms(delays.p99_ns)}


def _last(last: Stall) -> Json:
    culprit = last.culprit
    return {
        "id": last.id,
        "fingerprint": last.fingerprint,
        "state": last.state.value,
        "began_at": time_to_text(last.began_wall_ns),
        "duration_ms": _ms(last.duration_ns),
        "cause": last.cause.value,
        "culprit": None if culprit is None else to_wire(culprit),
    }
