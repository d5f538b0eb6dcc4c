from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from loopcanary.model import Cause, Culprit, Ledger, Session, Severity, Stall, StallScope, StallState
from loopcanary.store import Store

STALL = Stall(
    id="s1-1",
    session="s1",
    pid=41,
    fingerprint="f00d",
    title="json.loads in load_orders",
    thread="MainThread",
    loop="asyncio",
    scope=StallScope.CALLBACK,
    state=StallState.ENDED,
    severity=Severity.STALL,
    began_wall_ns=1_700_000_000_123_456_789,
    duration_ns=412_345_678,
    threshold_ns=100_000_000,
    callback="handle",
    task="Task-17",
    scene=None,
    cause=Cause.NATIVE_CPU,
    confidence=0.9,
    evidence=("on CPU for 98 %",),
    advice=None,
    culprit=Culprit(
        function="load_orders", qualname="load_orders", file="/app/orders.py", line=87, source=None, in_app=True
    ),
    blocker=None,
    holder=None,
    ledger=Ledger(on_cpu_ns=400_000_000),
    samples=9,
    coverage=0.8,
    dropped_samples=0,
    stacks=(),
)
SESSION = Session(
    id="s1",
    name="shop",
    pid=41,
    parent_pid=1,
    host="here",
    python="CPython 3.12.1",
    engine="native",
    started_wall_ns=1_700_000_000_000_000_000,
)


@pytest.fixture
def a_stall() -> Callable[..., Stall]:
    return lambda **changes: dataclasses.replace(STALL, **changes)


@pytest.fixture
def a_session() -> Callable[..., Session]:
    return lambda **changes: dataclasses.replace(SESSION, **changes)


@pytest.fixture
def a_store(tmp_path: Path) -> Iterator[Callable[..., Store]]:
    """Opens stores in one folder without retention by age, and closes them."""
    from loopcanary.store import Retention

    opened: list[Store] = []

    def make(**options: Any) -> Store:
        options.setdefault("retention", Retention(age_ns=1 << 62))
        store = Store(options.pop("folder", tmp_path / "store"), **options)
        opened.append(store)
        return store

    yield make
    for store in opened:
        store.close()
