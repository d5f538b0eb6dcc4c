from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from .watching import Watched


@pytest.fixture
def watched(tmp_path: Path) -> Callable[..., Watched]:
    """watched(engine) -> Watched, with a store of this test's own."""

    def make(engine: str = "native") -> Watched:
        return Watched(store=tmp_path / "store", engine=engine)

    return make
