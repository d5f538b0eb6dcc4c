"""What other threads see of a stall on its way."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.building.issues import FINDING, ISSUES, MORE_ISSUES
from tests.building.stalls import STALL

from loopcanary.engine import Boundary
from loopcanary.model import Config
from loopcanary.pipeline.pipeline import Pipeline
from loopcanary.registry import KINDS, REGISTRY


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


@pytest.mark.parametrize("is_deleted", [True, False])
@pytest.mark.parametrize("issue", [*ISSUES, *MORE_ISSUES, FINDING], ids=lambda issue: issue.kind.value)
def test_every_kind_can_be_switched_off(issue, is_deleted):
    stored: list[Any] = []
    config = Config(ignore=(f"kind:{issue.kind.value}",), delete_ignored=is_deleted)
    stations: Any = SimpleNamespace(introduce=None, reporters=(), interceptors=(), config=config)
    stations.sink = SimpleNamespace(put_issue=stored.append)
    pipeline = Pipeline(stations, Boundary(id), lambda: 0)
    pipeline.store_issue(issue)
    assert stored == ([] if is_deleted else [issue])
    assert pipeline.statistics() == {"issues_dropped_ignore": 1}


def test_every_kind_of_ours_is_among_them():
    tried = {issue.kind.value for issue in (*ISSUES, *MORE_ISSUES, FINDING)}
    assert tried == {one.name for one in REGISTRY.of(KINDS) if one.is_built_in} - {"stall"}
