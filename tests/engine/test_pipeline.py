"""What other threads see of a stall on its way."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests.building.stalls import STALL

from loopcanary.engine import Boundary
from loopcanary.pipeline.pipeline import Pipeline


def test_a_stall_that_counts_as_reported_is_there():
    """pytest's plugin waits for the count, then asks for the stalls."""
    stations: Any = SimpleNamespace(introduce=None, reporters=(), interceptors=())
    stations.sink = SimpleNamespace(put_issue=id)
    pipeline = Pipeline(stations, Boundary(id), lambda: 0)
    counted = []
    add = pipeline.recent.add
    pipeline.recent.add = lambda stall: (counted.append(pipeline.counts["stalls_reported"]), add(stall))  # type: ignore[method-assign,assign]
    pipeline._store_and_tell(STALL)
    assert (counted, pipeline.counts["stalls_reported"]) == ([0], 1)
