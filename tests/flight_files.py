"""Flight files that killed test programs leave in shared memory: each run of the tests clears its own.

A store's `flight` folder links to them, so that nothing is touched that other programs wrote. A run
that was killed itself left its folder behind: the next run clears that.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from loopcanary.model.method_map import remove_beside

_ABANDONED_S = 3_600
"""A run writes to its folder all the time."""


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    if folder := _folder_of(session.config):
        for path in _abandoned(folder):
            clear(path)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if folder := _folder_of(session.config):
        clear(folder)


def clear(folder: Path) -> None:
    """Removes the flight files that links anywhere in a folder lead to."""
    for link in folder.rglob("flight/*.flight"):
        with suppress(OSError):
            remove_beside(str(link.readlink()))
            link.readlink().unlink()


def _abandoned(folder: Path) -> Iterator[Path]:
    for path in folder.parent.glob("pytest-[0-9]*"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _ABANDONED_S:
                yield path


def _folder_of(config: pytest.Config) -> Path | None:
    """Where this run's tests have their folders; None in a worker, whose folder is in the run's."""
    factory = getattr(config, "_tmp_path_factory", None)
    return None if factory is None or hasattr(config, "workerinput") else factory.getbasetemp()
