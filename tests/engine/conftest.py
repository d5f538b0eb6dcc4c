from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .watching import Place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A folder for programs, and the store that they share."""
    made = Place(folder=tmp_path)
    yield made
    made.end_all()
