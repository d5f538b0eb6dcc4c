from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.program.watching import Watched


@pytest.fixture
def watched(tmp_path: Path) -> Callable[..., Watched]:
    """watched(engine) -> Watched, with a store of this test's own."""

    def make(engine: str = "native") -> Watched:
        return Watched(store=tmp_path / "store", engine=engine)

    return make


@pytest.fixture
def path() -> Iterator[Path]:
    """Of a socket: those of pytest's folders are too long for one."""
    with TemporaryDirectory(prefix="lc") as folder:
        yield Path(folder) / "socket"
