"""Readings of processes as they come, for tests of all that is made of them."""

from __future__ import annotations

from typing import Any

from tests.building import stalls
from tests.building.stalls import BEGAN, MS, S

from loopcanary.model import Cause, Culprit, LaneTotals, Session, Stall
from loopcanary.model.live import LaneReading, Life, ProcessReading, Work

NOW = 500 * S
WALL = BEGAN


def totals(**fields: Any) -> LaneTotals:
    """Of a loop that was opened 100 s ago, and waits."""
    whole = {
        "lane": 0,
        "generation": 1,
        "tid": 41,
        "loop_kind": "asyncio",
        "thread_name": "MainThread",
        "opened_ns": NOW - 100 * S,
        "closed_ns": None,
        "turns": 1_000,
        "callbacks": 3_000,
        "busy_ns": 10 * S,
        "busy_ns_squared": 1_000 * (10 * MS) ** 2,
        "longest_turn_ns": 10 * MS,
        "queue_ns_total": 0,
        "queue_ns_max": 0,
        "histogram": ((10 * MS, 1_000),),
    }
    return LaneTotals(**{**whole, **fields})


def lane(*, sums: dict[str, Any] | None = None, **fields: Any) -> LaneReading:
    """That loop now; `sums`: other fields of its totals."""
    since = fields.get("turn_since_ns")
    whole = {"totals": totals(busy_since_ns=since, **(sums or {})), "threshold_ns": 100 * MS}
    return LaneReading(**{**whole, **fields})


def in_callback(for_ns: int, **fields: Any) -> LaneReading:
    """That loop, in a callback since then, which began with its turn."""
    begun = {"callback_since_ns": NOW - for_ns, "turn_since_ns": NOW - for_ns}
    return lane(**{**begun, "work": Work(callback="handle", task="request-7"), **fields})


def session(**fields: Any) -> Session:
    whole = {"id": "20261121T120000-41-beef", "host": "box", "started_wall_ns": WALL - 100 * S}
    return stalls.running(**{**whole, **fields})


def process(*lanes: LaneReading, **fields: Any) -> ProcessReading:
    """A process that runs, with these lanes."""
    whole = {
        "key": "1-1",
        "session": session(),
        "life": Life.RUNS,
        "is_near": True,
        "at_ns": NOW,
        "at_wall_ns": WALL,
        "lanes": lanes or (lane(),),
    }
    return ProcessReading(**{**whole, **fields})


def stall(**fields: Any) -> Stall:
    """A stall of a quarter of a second."""
    culprit = Culprit(
        function="price",
        qualname="Shop.price",
        file="/srv/shop/pricing.py",
        line=13,
        source="time.sleep(0.25)",
        in_app=True,
    )
    whole = {
        "cause": Cause.SLEEP,
        "culprit": culprit,
        "duration_ns": 250 * MS,
        "began_wall_ns": WALL - 5 * S,
    }
    return stalls.stall(**{**whole, **fields})
