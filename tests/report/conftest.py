from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopcanary.store import Retention, Store


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "store", retention=Retention(age_ns=1 << 62))
    yield made
    made.close()
