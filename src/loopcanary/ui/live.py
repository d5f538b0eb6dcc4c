"""Looks at the stores now and then, and says when something changed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from loopcanary.model import Session, Stall
from loopcanary.model.search import StallQuery
from loopcanary.ui.remembered import Remembered
from loopcanary.ui.sources import Source, StoreLike, as_one

LOOK_EVERY_S = 1.0
_NOTICES_MAX = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What runs now beside one store."""

    running: tuple[Session, ...] = ()
    ongoing: tuple[Stall, ...] = ()
    notices: tuple[str, ...] = ()
    """Lines for people about what happened; they stay."""
    trouble: tuple[str, ...] = ()
    """Lines for people about what is wrong at this moment."""


Look = Callable[[StoreLike], Sight]
"""Takes in what dead processes left, and lays what runs now over the store. Raises only `errors`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """What was found at the last look."""

    stored: tuple[int, ...] = ()
    """Changes with each stall that is stored or removed."""
    running: int = 0
    ongoing: tuple[str, ...] = ()
    """Ids of stalls that go on."""
    moving: int = 0
    """Changes while programs run."""
    trouble: tuple[str, ...] = ()
    """What is wrong with a store, for people."""

    @property
    def version(self) -> str:
        """Another one each time that stalls came, went or ended."""
        return f"{hash((self.stored, self.ongoing, self.running)) & 0xFFFFFFFF:x}"


class Watch:
    """The stores, looked at again at most every second, when somebody asks. Thread-safe."""

    def __init__(self, stores: Sequence[StoreLike], look: Look, errors: tuple[type[Exception], ...]) -> None:
        self.stores = tuple(stores)
        self._remembered = tuple(Remembered(store) for store in self.stores)
        self.source: Source = as_one(self._remembered)
        self._look = look
        self._errors = errors
        self._lock = threading.Lock()
        self._looked_s = float("-inf")
        self._notices: dict[str, None] = {}
        self._now = Now()

    def now(self) -> Now:
        """What is so now, or was a second ago."""
        with self._lock:
            if time.monotonic() - self._looked_s >= LOOK_EVERY_S:
                self._now = self._looked()
                self._looked_s = time.monotonic()
            return self._now

    def again(self) -> None:
        """The next question looks anew: something was changed by us."""
        with self._lock:
            self._looked_s = float("-inf")

    def _looked(self) -> Now:
        sights: list[Sight] = []
        trouble: list[str] = []
        stored: list[int] = []
        for store, remembered in zip(self.stores, self._remembered, strict=True):
            try:
                sight = self._look(store)
                sums = remembered.totals(StallQuery())
            except self._errors as error:
                trouble.append(str(error))
                continue
            sights.append(sight)
            trouble += sight.trouble
            self._note(sight.notices)
            stored += [sums.stalls, sums.total_ns]
        running = [session for sight in sights for session in sight.running]
        return Now(
            stored=tuple(stored),
            running=len(running),
            ongoing=tuple(stall.id for sight in sights for stall in sight.ongoing),
            moving=self._now.moving + bool(running),
            trouble=(*self._notices, *trouble),
        )

    def _note(self, notices: Sequence[str]) -> None:
        """Keeps the last ones, each once: a page is served for weeks."""
        for notice in notices:
            self._notices.pop(notice, None)
            self._notices[notice] = None
        for old in list(self._notices)[:-_NOTICES_MAX]:
            del self._notices[old]
