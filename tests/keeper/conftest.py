from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from tests.keeper.processes import start, store

__all__ = ["start", "store"]


@pytest.fixture(autouse=True)
def _as_any_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Root's keeper believes less; programs of their own are not changed by this."""
    for part in ("program", "stations"):
        monkeypatch.setattr(f"loopcanary.assembly.keeper.{part}._IS_ROOT", False)


@pytest.fixture(autouse=True)
def _news_of_folders() -> Iterator[None]:
    """A followed folder sends SIGIO, which ends a process that does not expect it."""
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGIO, before)
