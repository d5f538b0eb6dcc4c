"""The native backend: the C watchdog, and its flight file as the drain reads it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from loopcanary.engine.recorder import DRAIN, Recorder
from loopcanary.engine.threads import ThreadNames
from loopcanary.model.config import ANR_NS, HANG_NS

if TYPE_CHECKING:
    from pathlib import Path

    from loopcanary._native import Native
    from loopcanary.flight import FlightFile
    from loopcanary.model import LaneTotals, StallEvidence
    from loopcanary.model.config import Config


_KEPT_MAX = 8
"""Slots that wait for their stalls to be stored, of sixteen: in a storm the watchdog needs free ones."""
_DRAIN = "loopcanary-drain"
"""What our own thread goes by; `threading` does not know it."""


class NativeBackend(Recorder):
    """The C engine behind the Backend protocol. GIL held in every method; `wait` sleeps without it."""

    def __init__(
        self, native: Native, config: Config, *, folder: str, session_id: str, begun: Recorder | None = None
    ) -> None:
        """`begun`: it runs already, for a keeper."""
        super().__init__(native, config, folder=folder, session_id=session_id)
        self._flight: FlightFile | None = None
        self._begun = begun
        self.stalls_ended = native.stalls_ended
        self._news = 0
        self._drain_tid = 0
        self._thread_names = ThreadNames()
        self._announced: dict[int, tuple[int, int]] = {}
        """Stalls that were read while they last, by serial: the slot, and the stage."""
        self._read: dict[int, int] = {}
        """Slots of stalls that were read and not yet released, by serial."""

    def start(self) -> None:
        """As Recorder.record. From now on this process judges its stalls itself, also those of `begun`."""
        if self._begun is None or self._begun.place is None:
            self.record()
            return
        self.place, self.file = self._begun.place, self._begun.file
        self.native.on_take_over(None)
        self.native.set_taker(DRAIN)

    def open(self, open_flight: Callable[[Path, Callable[[], int]], FlightFile]) -> None:
        """Opens the flight file, once it is there: by its path, else by a new descriptor of it."""
        if self.file is not None:
            from pathlib import Path

            self._flight = open_flight(Path(self.file), self.native.flight_descriptor)

    @property
    def flight(self) -> FlightFile | None:
        """The flight file, while it is open."""
        return self._flight

    def discard(self) -> None:
        """Closes the flight file and removes it: all that it held is stored."""
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

    def read(self) -> Sequence[StallEvidence]:
        """Ended stalls; and each hang once while it lasts, and once as an ANR."""
        found: list[StallEvidence] = []
        if self._flight is None:
            return found
        for slot, evidence in self._flight.stalls(self._read.keys(), hangs=True):
            if evidence.end_ns is not None:
                # The end can be known from the lane before the watchdog has completed the slot: then it comes
                # again. Without a watchdog it is as complete as it will ever be.
                if self.native.slot_is_complete(slot, evidence.serial) or not self.native.is_running():
                    found.append(evidence)
                    self._read[evidence.serial] = slot
                    self._announced.pop(evidence.serial, None)
                    if len(self._read) > _KEPT_MAX:
                        self.release(evidence)
            elif self._announce(slot, evidence):
                found.append(evidence)
        if not found:
            return found
        from dataclasses import replace

        names = (*self._thread_names.look(), (self._drain_tid, _DRAIN))
        # What the watchdog read counts: numbers are given out again.
        named = [replace(evidence, thread_names=(*names, *evidence.thread_names)) for evidence in found]
        return sorted(named, key=lambda evidence: evidence.begin_ns)

    def _announce(self, slot: int, evidence: StallEvidence) -> bool:
        """Whether it has come to a stage at which it was not reported."""
        lasted_ns = evidence.last_look_ns - evidence.begin_ns
        stage = (lasted_ns >= HANG_NS) + (lasted_ns >= ANR_NS)
        _, before = self._announced.get(evidence.serial, (slot, 0))
        if stage > before:
            self._announced[evidence.serial] = slot, stage
        return stage > before

    def release(self, evidence: StallEvidence) -> None:
        """Gives the slot of an ended stall back; of a judged hang the watchdog then says no first word."""
        if evidence.end_ns is None and not self.is_over:
            self.native.tell_hang(self._announced[evidence.serial][0], evidence.serial)
        slot = self._read.get(evidence.serial)
        if slot is not None and not self.is_over and self.native.release_slot(slot, evidence.serial):
            del self._read[evidence.serial]

    def totals(self) -> Sequence[LaneTotals]:
        """Sums of every watched thread."""
        return self._flight.lanes() if self._flight is not None else ()

    def statistics(self) -> dict[str, int]:
        return self._flight.counters() if self._flight is not None else {}
