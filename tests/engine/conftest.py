from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from .watching import Place


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """One that every user may enter: those of pytest are the tester's own."""
    with tempfile.TemporaryDirectory(prefix="loopcanary-test-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A folder for programs, and the store that they share."""
    made = Place(folder=tmp_path)
    yield made
    made.end_all()
