"""Garbage collections, with their thread and duration, by gc.callbacks."""

from __future__ import annotations

import gc
import threading
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

from loopcanary.model.evidence import Collection

_SHORTEST_NS = 1_000_000
"""Collections of the youngest generation come by the thousand and explain no stall."""
_KEPT_MAX = 64
_THREADS_MAX = 1024


class CollectionLog:
    """The last collections that took long enough to matter."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._begin_ns: int | None = None
        self._collections: deque[Collection] = deque(maxlen=_KEPT_MAX)
        self._total_ns: Counter[int] = Counter()

    def start(self) -> None:
        """Begins to note. Any thread."""
        callbacks = getattr(gc, "callbacks", None)  # PyPy has none
        if callbacks is not None and self._note not in callbacks:
            callbacks.append(self._note)

    def stop(self) -> None:
        """Takes the callback back. Any thread."""
        callbacks = getattr(gc, "callbacks", None)
        if callbacks is not None and self._note in callbacks:
            callbacks.remove(self._note)

    def between(self, begin_ns: int, end_ns: int) -> tuple[Collection, ...]:
        """Collections of any thread that overlap with a stall."""
        return tuple(
            one for one in self._collections.copy() if one.begin_ns < end_ns and one.end_ns > begin_ns
        )

    def over_at(self, now_ns: int) -> tuple[Collection, ...]:
        """Collections of any thread that were over by then."""
        return tuple(one for one in self._collections.copy() if one.end_ns <= now_ns)

    def total_ns(self, tid: int) -> int | None:
        """Time that this thread spent in collections, short ones as well; None where nothing is noted."""
        return self._total_ns[tid] if getattr(gc, "callbacks", None) is not None else None

    def _note(self, phase: str, info: dict[str, Any]) -> None:
        # Any thread, inside a collection. One runs at a time (Modules/gcmodule.c: `collecting`).
        if phase == "start":
            self._begin_ns = self._clock()
            return
        begin_ns, self._begin_ns = self._begin_ns, None
        now_ns = self._clock()
        if begin_ns is None:
            return
        tid = threading.get_native_id()
        if tid not in self._total_ns and len(self._total_ns) >= _THREADS_MAX:
            self._total_ns.clear()
        self._total_ns[tid] += now_ns - begin_ns
        if now_ns - begin_ns < _SHORTEST_NS:
            return
        self._collections.append(
            Collection(
                begin_ns=begin_ns,
                end_ns=now_ns,
                tid=tid,
                generation=info.get("generation", 0),
                collected=info.get("collected", 0),
                uncollectable=info.get("uncollectable", 0),
            )
        )
