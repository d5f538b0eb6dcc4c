"""The native backend: the C watchdog, and its flight file as the drain reads it."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from loopcanary.engine.flight_place import FlightPlace, candidates, discard, prepare
from loopcanary.engine.thread_names import ThreadNames
from loopcanary.model import Config, LaneTotals, StallEvidence
from loopcanary.model.stall import ANR_NS, HANG_NS
from loopcanary.protocols.engine import ScopeListener

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
_PATIENCE_S = 2.0
"""How long an end waits for the watchdog: less than callers wait for the drain, which still has to store."""
_DRAIN = "loopcanary-drain"
"""What our own thread goes by; `threading` does not know it."""


class FlightOpener(Protocol):
    """Opens a flight file by path; `flight.FlightFile.open` is one."""

    def __call__(self, path: Path, /) -> OpenFlight:
        """The open file."""


class NativeBackend:
    """The C engine behind the Backend protocol. GIL held in every method; `wait` sleeps without it."""

    name = "native"

    def __init__(
        self, native: Native, config: Config, *, folder: Path, session_id: str, open_flight: FlightOpener
    ) -> None:
        self._native = native
        self._config = config
        self._folder = folder
        self._session_id = session_id
        self._open_flight = open_flight
        self._place: FlightPlace | None = None
        self._flight: OpenFlight | None = None
        self._is_over = False
        self._news = 0
        self._drain_tid = 0
        self._thread_names = ThreadNames()
        self._announced: set[int] = set()
        self._taken: dict[int, int] = {}
        """Slots of stalls that were taken and not yet released, by serial."""

    def start(self) -> None:
        """Creates the flight file in the best place that works. OSError or RuntimeError with the reason."""
        errors = []
        for place in candidates(self._folder, self._session_id):
            try:
                self._start_at(place)
            except OSError as error:
                discard(place)
                # What could not be made is not always the file: a link to it, or the store's folder.
                errors.append(f"{error.filename2 or error.filename or place.path}: {error.strerror or error}")
            else:
                return
        raise OSError("no place for the flight file: " + "; ".join(errors))

    def _start_at(self, place: FlightPlace) -> None:
        prepare(place)
        self._native.start(
            path=str(place.path),
            facts=b"{}",
            threshold_ns=self._config.threshold_ns,
            sample_delay_ns=self._config.first_sample_ns,
            sample_interval_ns=self._config.sample_interval_ns,
            hang_ns=HANG_NS,
            anr_ns=ANR_NS,
            **({"checkpoint": str(place.saved)} if place.saved is not None else {}),
        )
        try:
            self._flight = self._open_flight(place.path)
        except BaseException as error:
            self._native.stop(False, _PATIENCE_S)
            discard(place)
            if isinstance(error, Exception):  # any other place may do
                raise OSError(str(getattr(error, "what", error))) from error
            raise
        self._place = place
        if place.is_nameless:
            discard(place)

    @property
    def file(self) -> Path | None:
        """The flight file, while there is one."""
        return self._place.path if self._place is not None else None

    def set_facts(self, facts: dict[str, Any]) -> bool:
        """Stores the session's facts in the flight file; False where they are too long for it."""
        text = json.dumps(facts, separators=(",", ":"), ensure_ascii=False)
        return bool(self._native.set_facts(text.encode("utf-8", "replace")))

    def rest(self, patience_s: float) -> bool:
        """Ends the watchdog's thread. Lanes go on; in between only samples are missed. False where it does
        not end in time."""
        return self._native.pause(patience_s)

    def go_on(self) -> None:
        """Starts the watchdog's thread again. OSError where the system gives none."""
        self._native.resume()

    def stop(self) -> None:
        """Ends the watchdog, which completes what has ended; `take` and `totals` work until `discard`. One
        that does not end in time (a disk that holds up its checkpoint) is left alone."""
        # A drain that was too late for its own end may find that the program has installed us again: there is
        # one engine in a process, and that is no longer this one.
        if not self._is_over:
            self._native.stop(True, _PATIENCE_S)
            self._is_over = True

    def discard(self) -> None:
        """Closes the flight file and removes it: all that it held has been taken."""
        self.let_go()
        if self._place is not None:
            discard(self._place)
            self._place = None

    def let_go(self) -> None:
        """Closes the flight file and leaves it where it is. In a forked child, too: it is the parent's."""
        if self._flight is not None:
            self._flight.close()
            self._flight = None

    @property
    def listener(self) -> ScopeListener:
        """Gets scenes and work from `scopes`: the extension itself."""
        return cast("ScopeListener", self._native)

    def wait(self, timeout_s: float | None) -> bool:
        """Sleeps without the GIL until there is news or the time is over."""
        self._drain_tid = threading.get_native_id()
        before = self._news
        self._news = self._native.wait_for_news(before, -1.0 if timeout_s is None else timeout_s)
        return self._news != before

    def wake(self) -> None:
        """Makes `wait` return. Any thread."""
        self._native.wake()

    def take(self) -> Sequence[StallEvidence]:
        """Ended stalls, and each ANR once while it lasts."""
        taken: list[StallEvidence] = []
        if self._flight is None:
            return taken
        for slot, evidence in self._flight.stalls(self._taken.keys()):
            if evidence.end_ns is not None:
                # The end can be known from the lane before the watchdog has completed the slot: then it comes
                # again. Without a watchdog it is as complete as it will ever be.
                if self._native.slot_is_complete(slot, evidence.serial) or not self._native.is_running():
                    taken.append(evidence)
                    self._taken[evidence.serial] = slot
                    self._announced.discard(evidence.serial)
                    if len(self._taken) > _KEPT_MAX:
                        self.release(evidence)
            elif self._is_new_anr(evidence):
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
        if slot is not None and not self._is_over and self._native.release_slot(slot, evidence.serial):
            del self._taken[evidence.serial]

    def totals(self) -> Sequence[LaneTotals]:
        """Sums of every watched thread."""
        return self._flight.lanes() if self._flight is not None else ()

    def statistics(self) -> dict[str, int]:
        return self._flight.counters() if self._flight is not None else {}
