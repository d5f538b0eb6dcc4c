"""The fixture `watch`: this very process watched by the native engine, for tests of probes."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.program.watching import is_made_by_the_host

import loopcanary
from loopcanary.assembly.store import open_store
from loopcanary.model import Stall
from loopcanary.model.search import STALLS
from loopcanary.registry import REGISTRY


@dataclass(frozen=True, slots=True)
class Watch:
    """This very process, watched for a while; with what was stored of it."""

    folder: Path

    def install(self, **settings: Any) -> Any:
        """Without a keeper: what is asked next has to be stored by then."""
        given = {"store": self.folder, "console": "off", "engine": "native", "keeper": False}
        return loopcanary.install(**given | settings)

    @contextmanager
    def installed(self, **settings: Any) -> Iterator[Any]:
        canary = self.install(**settings)
        try:
            yield canary
        finally:
            loopcanary.uninstall()

    def stalls(self) -> list[Stall]:
        """All stalls, oldest first; to be asked when nothing is watched any more: then all is stored.
        Without those that were made by a host that was too busy to run this process, or even the watchdog:
        they are no part of any story, and every block of these tests lasts until it was sampled."""
        found = []
        for stall in self.all_stalls():
            if stall.samples and not _is_by_the_host(stall):
                found.append(stall)
            else:
                print("left out:", stall)  # noqa: T201 - shown where a test fails
        return found

    def all_stalls(self) -> list[Stall]:
        """The same, with those: where many short callbacks each wait for a core, it is to blame, too."""
        store = open_store(self.folder)
        try:
            found = store.reader.issues(STALLS)
        finally:
            store.close()
        return sorted(found, key=lambda stall: stall.began_wall_ns)


def _is_by_the_host(stall: Stall) -> bool:
    return is_made_by_the_host(
        stall.cause.value,
        holder=None if stall.holder is None else stall.holder.thread,
        heaviest=[frame.qualname for frame in stall.stacks[0].frames] if stall.stacks else [],
        waited_on=None if stall.waited_on is None else stall.waited_on.name,
    )


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    for name in ("LOOPCANARY", "LOOPCANARY_STORE", "LOOPCANARY_ENGINE"):
        monkeypatch.delenv(name, raising=False)
    interceptors = list(REGISTRY.interceptors)
    gc.freeze()  # a collection of all that pytest has is a stall
    yield Watch(tmp_path / "store")
    loopcanary.uninstall()
    gc.unfreeze()
    REGISTRY.interceptors[:] = interceptors
