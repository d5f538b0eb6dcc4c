"""What lies beside a flight file, as issues: the start of its process, and calls that took too long outside
of stalls."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from loopcanary.assembly import native_module
from loopcanary.flight import FlightFile
from loopcanary.flight.beside.slow_calls import SlowCall, SlowCalls
from loopcanary.flight.beside.start import read_start
from loopcanary.flight.header import LARGEST
from loopcanary.model import Config, LagIssue, LaneTotals, Session, Startup
from loopcanary.model.method_map import START
from loopcanary.store.recovery.flight_folder import CLAIMED
from loopcanary.tracers.desk import Told
from loopcanary.tracers.reported import completed
from loopcanary.tracers.slow_methods import slow_method_of_call
from loopcanary.tracers.start_phases import start_of

_MAIN, _OTHER = "MainThread", "thread"
Owns = Callable[[str], bool]
"""Whether a file is the program's own code."""


class SlowCallIssues:
    """Those of one program, each given once. `file`: its flight file, open."""

    def __init__(self) -> None:
        self._calls = SlowCalls()

    def are_there(self, file: FlightFile) -> bool:
        """Whether some have ended that were not given. Costs next to nothing where no calls are traced."""
        return self._calls.has_new(_path(file), file.tick_clock)

    def new(self, file: FlightFile, session: Session, config: Config, owns: Owns) -> Sequence[LagIssue]:
        """Those that have ended and were not given."""
        try:
            call_tree = native_module().call_tree
        except ImportError:
            return ()
        return _issues(self._calls.read(_path(file), file.tick_clock, call_tree, owns), file, session, config)

    def left_behind(
        self,
        file: FlightFile,
        session: Session,
        config: Config,
        owns: Owns,
        *,
        last_ns: int,
    ) -> Sequence[LagIssue]:
        """All of a process that is dead, with those in which it died. `last_ns`: it lived until then, at
        least."""
        ended = self.new(file, session, config, owns)
        try:
            call_tree = native_module().call_tree
        except ImportError:
            return ()
        left_open = self._calls.left_open(
            _path(file),
            file.tick_clock,
            call_tree,
            owns,
            last_ns=last_ns,
            least_ns=config.slow_method_ns,
            judged_ns={lane.tid: _judged_ns(lane) for lane in file.lanes()},
        )
        return [*ended, *_issues(left_open, file, session, config)]


def _judged_ns(lane: LaneTotals) -> int:
    """Calls that began before then are around a turn, or in one."""
    if lane.busy_since_ns is not None:
        return LARGEST
    return -1 if lane.turned_ns is None else lane.turned_ns


def _path(file: FlightFile) -> str:
    return file.name.removesuffix(CLAIMED)


def _issues(calls: Sequence[SlowCall], file: FlightFile, session: Session, config: Config) -> list[LagIssue]:
    found: list[LagIssue] = []
    names = {lane.tid: lane.thread_name for lane in file.lanes()} if calls else {}
    for call in calls:
        usual = _MAIN if call.tid == file.header.pid else _OTHER
        with suppress(ValueError):  # the file holds impossible values
            found.append(
                slow_method_of_call(
                    call.calls,
                    session,
                    thread=names.get(call.tid) or usual,
                    key=f"{call.tid}-{call.began_us}",
                    began_wall_ns=file.header.clock.to_wall_ns(call.began_ns),
                    duration_ns=call.duration_ns,
                    threshold_ns=config.slow_method_ns,
                )
            )
    return found


def completed_hang(found: LagIssue, session: Session, serial: int) -> LagIssue:
    """The issue of a program that does not start or end, with its id, title and fingerprint."""
    return completed(Told(issue=found, thread=_MAIN, scene=None, told_ns=0), session, serial, ())


def start_in(file: FlightFile, session: Session, config: Config, *, last_ns: int | None) -> Startup | None:
    """The start of the process that has, or left, this flight file; None: it was not noted, or is not over.

    `last_ns`: the process has ended; it was seen to live last at this monotonic time.
    """
    notes = read_start(_path(file) + START)
    if notes is None or (notes.end_ns is None and (last_ns is None or notes.is_short)):
        return None
    lanes = [lane for lane in file.lanes() if lane.loop_kind != _OTHER and lane.tid == file.header.pid]
    found = start_of(
        notes,
        file.header.clock,
        turn_ns=min((lane.opened_ns for lane in lanes), default=None),
        last_ns=last_ns or time.monotonic_ns(),
        cold_ns=config.startup_threshold_ns,
        warm_ns=config.warm_start_ns,
    )
    told = Told(issue=found, thread=_MAIN, scene=None, told_ns=0)
    try:
        done = completed(told, session, 0, ())
    except ValueError:  # the file holds impossible values
        return None
    assert isinstance(done, Startup)
    return done
