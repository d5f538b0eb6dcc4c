"""The start of a process, from the file of its notes beside its flight file."""

from __future__ import annotations

import time

from loopcanary.flight import FlightFile
from loopcanary.flight.beside.start import read_start
from loopcanary.model import Config, Session, Startup
from loopcanary.model.method_map import START
from loopcanary.store.recovery.flight_folder import CLAIMED
from loopcanary.tracers.desk import Told
from loopcanary.tracers.reported import completed
from loopcanary.tracers.start_phases import start_of

_THREAD = "MainThread"
_NO_LOOP = "thread"


def start_in(file: FlightFile, session: Session, config: Config, *, last_ns: int | None) -> Startup | None:
    """The start of the process that has, or left, this flight file; None: it was not noted, or is not over.

    `last_ns`: the process has ended; it was seen to live last at this monotonic time.
    """
    notes = read_start(file.name.removesuffix(CLAIMED) + START)
    if notes is None or (notes.end_ns is None and (last_ns is None or notes.is_short)):
        return None
    lanes = [lane for lane in file.lanes() if lane.loop_kind != _NO_LOOP and lane.tid == file.header.pid]
    found = start_of(
        notes,
        file.header.clock,
        turn_ns=min((lane.opened_ns for lane in lanes), default=None),
        last_ns=last_ns or time.monotonic_ns(),
        cold_ns=config.startup_cold_ns,
        warm_ns=config.startup_warm_ns,
    )
    told = Told(issue=found, thread=_THREAD, scene=None, told_ns=0)
    try:
        done = completed(told, session, 0, ())
    except ValueError:  # the file holds impossible values
        return None
    assert isinstance(done, Startup)
    return done
