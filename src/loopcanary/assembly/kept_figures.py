"""What the flight file says of this process, whose stalls a keeper takes. Loaded when asked, on a thread of
the program: neither the rules of the diagnosis nor the store is loaded for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from loopcanary.diagnosis.health.pools import process_health
from loopcanary.engine.recorder import Recorder
from loopcanary.flight.format import TakenBy
from loopcanary.flight.reader import FlightFile, open_own
from loopcanary.model import Config, LoopHealth, Session, SessionEnd, Stall
from loopcanary.wire import from_wire, to_wire


class KeptFigures:
    """See engine.kept.OwnFigures."""

    def __init__(self, config: Config, recorder: Recorder, session: dict[str, Any]) -> None:
        self._config = config
        self._recorder = recorder
        self._session = from_wire(Session, session)
        self._file: FlightFile | None = None

    def session(self) -> Session:
        return self._session

    def _flight(self) -> FlightFile:
        if self._file is None:
            path = self._recorder.file
            assert path is not None
            self._file = open_own(Path(path), self._recorder.native.flight_descriptor)
        return self._file

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def loops(self) -> tuple[LoopHealth, ...]:
        return process_health(self._flight().lanes(), time.monotonic_ns())

    def statistics(self) -> dict[str, Any]:
        file = self._flight()
        counts: dict[str, Any] = dict(file.counters())
        if file.header.taken_by is TakenBy.KEEPER:
            counts["stalls_reported"] = counts["stalls_recorded"]
        return counts

    def loops_as_told(self) -> list[dict[str, Any]]:
        return [to_wire(loop) for loop in self.loops()]

    def stall_reader(self) -> Callable[[], list[Stall]]:
        from loopcanary.assembly.kept_stalls import all_stalls

        file = self._flight()
        return lambda: all_stalls(self._config, self._session, file)

    def say_clean(self) -> None:
        """Where nothing stalled, and a person waits for the word."""
        from loopcanary.assembly.run_facts import RunFacts
        from loopcanary.reporters.wanted import console

        file = self._flight()
        ended = replace(
            self._session,
            ended_wall_ns=file.header.clock.to_wall_ns(time.monotonic_ns()),
            end=SessionEnd.EXIT,
            loops=self.loops(),
            statistics=file.counters(),
        )
        reporter = console(RunFacts(config=self._config, session=ended))
        if reporter is not None:
            reporter.close(ended, [])
