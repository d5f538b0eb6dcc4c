from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from loopcanary.store import Retention, Store

FOREVER = Retention(age_ns=1 << 62)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def make_store(folder: Path) -> Iterator[Callable[..., Store]]:
    """Makes stores that keep stalls of any age, and closes them."""
    made: list[Store] = []

    def make(**options: Any) -> Store:
        made.append(Store(options.pop("folder", folder), **{"retention": FOREVER, **options}))
        return made[-1]

    yield make
    for store in made:
        store.close()


@pytest.fixture
def store(make_store: Callable[..., Store]) -> Store:
    return make_store()
