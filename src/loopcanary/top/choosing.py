"""Chooses and orders the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from loopcanary.late_dataclass import dataclass
from loopcanary.top.rows import LaneRow, State

DEAD_SHOWN_NS: Final = 600_000_000_000
"""Processes that were killed longer ago are shown only with everything."""
EXITED_SHOWN_NS: Final = 10_000_000_000
"""The same for those that ended well: many short ones must not push out running ones."""
_SHOWN_NS: Final = {State.KILLED: DEAD_SHOWN_NS, State.EXITED: EXITED_SHOWN_NS}
_RANK: Final = {state: rank for rank, state in enumerate(State)}
# States that change many times a second have one rank, so that their rows stay in place.
_RANK[State.IDLE] = _RANK[State.BUSY]

Order = Callable[[LaneRow], Any]

ORDERS: Final[dict[str, Order]] = {
    "trouble": lambda row: (
        _RANK[row.state],
        *((-(row.state_ns or 0),) if row.state in (State.HUNG, State.STALLED) else ()),
    ),
    "busy": lambda row: -(row.utilization_now if row.utilization_now is not None else -1.0),
    "delay": lambda row: -(row.delay_now or row.delay).p99_ns if row.state.is_live else 1,
    "callbacks": lambda row: -(row.callbacks_per_s if row.callbacks_per_s is not None else -1.0),
    "stalls": lambda row: -row.stalls,
    "latest": lambda row: -(row.last.began_wall_ns if row.last is not None else 0),
    "program": lambda row: row.program.lower(),
    "pid": lambda row: row.pid,
}
"""The sort keys by the names of orders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChoice:
    order: str = "trouble"
    reverse: bool = False
    words: str = ""
    """Each word must occur, in any case, in program, thread, loop, state, callback or last stall."""
    everything: bool = False
    """Includes loops that are gone, and processes that ended a while ago."""


def chosen(rows: Sequence[LaneRow], choice: RowChoice) -> list[LaneRow]:
    """The chosen rows in order; equal ones by program, process and lane."""
    order = ORDERS[choice.order]
    shown = [row for row in rows if choice.everything or _is_current(row)]
    words = choice.words.lower().split()
    found = [row for row in shown if not words or _has(row, words)]
    found.sort(key=lambda row: (row.program, row.pid, row.key))
    found.sort(key=order, reverse=choice.reverse)
    return found


def _is_current(row: LaneRow) -> bool:
    limit_ns = _SHOWN_NS.get(row.state)
    return not row.is_past and (limit_ns is None or (row.state_ns or 0) < limit_ns)


def _has(row: LaneRow, words: Iterable[str]) -> bool:
    work, last = row.work, row.last
    parts = [row.program, row.thread, row.loop_kind, row.state.value, str(row.pid), row.session.id]
    if work is not None:
        parts += [part for part in (work.callback, work.task, work.scene) if part]
    if last is not None:
        parts += [last.cause.value, last.fingerprint]
        parts += [last.blamed.qualname, last.blamed.file] if last.blamed is not None else []
    text = "\n".join(parts).lower()
    return all(word in text for word in words)
