from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from importlib.util import find_spec

import pytest
from tests.building.stalls import SESSION

from loopcanary.exporters import Exported, Program, find
from loopcanary.model import Stall

NEEDS = {"pprof": "google.protobuf"}


def can_write(form: str) -> bool:
    """Whether the library of the format is installed."""
    return form not in NEEDS or find_spec(NEEDS[form].partition(".")[0]) is not None


def need(form: str) -> None:
    """Skips where the library of the format is not installed."""
    if form in NEEDS:
        pytest.importorskip(NEEDS[form])


def written(form: str, stalls: Iterable[Stall], programs: Mapping[str, Program] | None = None) -> bytes:
    """What a format makes of stalls."""
    need(form)
    kept = list(stalls)
    out = io.BytesIO()
    exported = Exported(
        stalls=iter(kept),
        origin_wall_ns=min(stall.began_wall_ns for stall in kept),
        programs={SESSION.id: Program(name="shop")} if programs is None else programs,
    )
    found = find(form)
    assert found is not None
    found.write(exported, out)
    return out.getvalue()
