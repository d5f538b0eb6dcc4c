"""The native backend: the C watchdog, and its flight file as the drain reads it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from loopcanary.engine.in_process.thread_names import ThreadNames
from loopcanary.engine.recorder import DRAIN, PROGRAM, Recorder
from loopcanary.model import Config, LaneTotals, StallEvidence
from loopcanary.model.config import ANR_NS

if TYPE_CHECKING:
    from loopcanary._native import Native


class OpenFlight(Protocol):
    """What the drain needs of a flight file; `flight.FlightFile` is one."""

    def stalls(self, without: AbstractSet[int]) -> Sequence[tuple[int, StallEvidence]]:
        """Stalls in slots, with the slot's number."""

    def lanes(self) -> Sequence[LaneTotals]:
        """Sums of every watched thread."""

    def counters(self) -> dict[str, int]:
        """The native side's own counters."""

    def close(self) -> None:
        """Gives the mapping back."""


_KEPT_MAX = 8
"""Slots that wait for their stalls to be stored, of sixteen: in a storm the watchdog needs free ones."""
_DRAIN = "loopcanary-drain"
"""What our own thread goes by; `threading` does not know it."""


class FlightOpener(Protocol):
    """Opens this process's flight file; `flight.open_own` is one."""

    def __call__(self, path: Path, descriptor: Callable[[], int], /) -> OpenFlight:
        """By its path, else by a new descriptor of it."""


class NativeBackend(Recorder):
    """The C engine behind the Backend protocol. GIL held in every method; `wait` sleeps without it."""

    def __init__(
        self,
        native: Native,
        config: Config,
        *,
        folder: str,
        session_id: str,
        open_flight: FlightOpener,
        begun: Recorder | None = None,
        has_keeper: bool = False,
    ) -> None:
        """`begun`: it runs already, for a keeper, which may go on to report hangs (`has_keeper`)."""
        super().__init__(native, config, folder=folder, session_id=session_id)
        self._open_flight = open_flight
        self._flight: OpenFlight | None = None
        self._begun = begun
        self.stalls_ended = native.stalls_ended
        self.has_keeper = has_keeper
        """A keeper reports hangs."""
        self._news = 0
        self._drain_tid = 0
        self._thread_names = ThreadNames()
        self._announced: set[int] = set()
        self._taken: dict[int, int] = {}
        """Slots of stalls that were taken and not yet released, by serial."""

    def start(self) -> None:
        """As Recorder.record. From now on this process takes its stalls itself, also those of `begun`."""
        if self._begun is None or self._begun.place is None:
            self.record(opened=self._open)
            return
        self.place, self.file = self._begun.place, self._begun.file
        self._open(self.place.path)
        self.native.set_taker(PROGRAM if self.has_keeper else DRAIN)
        self.native.on_take_over(self._tell_hangs if self.has_keeper else None)

    def _tell_hangs(self) -> None:
        """There will be no keeper that does."""
        self.has_keeper = False
        self.native.set_taker(DRAIN)
        self.native.wake()

    def _open(self, path: str) -> None:
        self._flight = self._open_flight(Path(path), self.native.flight_descriptor)

    def discard(self) -> None:
        """Closes the flight file and removes it: all that it held has been taken."""
        self.let_go()
        super().discard()

    def let_go(self) -> None:
        """Closes the flight file and leaves it where it is. In a forked child, too: it is the parent's."""
        if self._flight is not None:
            self._flight.close()
            self._flight = None

    def wait(self, timeout_s: float | None) -> bool:
        """Sleeps without the GIL until there is news or the time is over."""
        self._drain_tid = threading.get_native_id()
        before = self._news
        self._news = self.native.wait_for_news(before, -1.0 if timeout_s is None else timeout_s)
        return self._news != before

    def wake(self) -> None:
        """Makes `wait` return. Any thread."""
        self.native.wake()

    def take(self) -> Sequence[StallEvidence]:
        """Ended stalls, and each ANR once while it lasts, if no keeper reports it."""
        taken: list[StallEvidence] = []
        if self._flight is None:
            return taken
        for slot, evidence in self._flight.stalls(self._taken.keys()):
            if evidence.end_ns is not None:
                # The end can be known from the lane before the watchdog has completed the slot: then it comes
                # again. Without a watchdog it is as complete as it will ever be.
                if self.native.slot_is_complete(slot, evidence.serial) or not self.native.is_running():
                    taken.append(evidence)
                    self._taken[evidence.serial] = slot
                    self._announced.discard(evidence.serial)
                    if len(self._taken) > _KEPT_MAX:
                        self.release(evidence)
            elif not self.has_keeper and self._is_new_anr(evidence):
                taken.append(evidence)
                self._announced.add(evidence.serial)
        names = (*self._thread_names.look(), (self._drain_tid, _DRAIN)) if taken else ()
        # What the watchdog read counts: numbers are given out again.
        named = [replace(evidence, thread_names=(*names, *evidence.thread_names)) for evidence in taken]
        return sorted(named, key=lambda evidence: evidence.begin_ns)

    def _is_new_anr(self, evidence: StallEvidence) -> bool:
        lasted_ns = evidence.last_look_ns - evidence.begin_ns
        return lasted_ns >= ANR_NS and evidence.serial not in self._announced

    def release(self, evidence: StallEvidence) -> None:
        """Gives the slot of an ended stall back to the watchdog."""
        slot = self._taken.get(evidence.serial)
        if slot is not None and not self.is_over and self.native.release_slot(slot, evidence.serial):
            del self._taken[evidence.serial]

    def totals(self) -> Sequence[LaneTotals]:
        """Sums of every watched thread."""
        return self._flight.lanes() if self._flight is not None else ()

    def statistics(self) -> dict[str, int]:
        return self._flight.counters() if self._flight is not None else {}
