"""What the flight file and the store say of this process, whose stalls a keeper takes. Loaded when asked."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from loopcanary import diagnosis, flight
from loopcanary.assembly.run_facts import RunFacts
from loopcanary.assembly.store import Autopsy, open_store, recover
from loopcanary.engine.recorder import SUFFIX, Recorder
from loopcanary.model import Config, LoopHealth, Session, SessionEnd, Stall, StallState
from loopcanary.model.search import STALLS, of_type
from loopcanary.reporters.wanted import console
from loopcanary.wire import from_wire, to_wire

_STALLS_MAX = 1_000


class KeptReading:
    """See engine.kept.OwnFigures."""

    def __init__(self, config: Config, recorder: Recorder, session: dict[str, Any]) -> None:
        self._config = config
        self._recorder = recorder
        self._session = from_wire(Session, session)
        self._file: flight.FlightFile | None = None
        self._autopsy = Autopsy()

    def session(self) -> Session:
        return self._session

    def _flight(self) -> flight.FlightFile:
        if self._file is None:
            path = self._recorder.file
            assert path is not None
            self._file = self._autopsy.open(Path(path))
        return self._file

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def loops(self) -> tuple[LoopHealth, ...]:
        return diagnosis.process_health(self._flight().lanes(), time.monotonic_ns())

    def statistics(self) -> dict[str, Any]:
        counts: dict[str, Any] = dict(self._flight().counters())
        counts["stalls_reported"] = counts["stalls_recorded"]
        counts["loops"] = [to_wire(loop) for loop in self.loops()]
        return counts

    def say_clean(self) -> None:
        """Where nothing stalled, and a person waits for the word."""
        file = self._flight()
        ended = replace(
            self._session,
            ended_wall_ns=file.header.clock.to_wall_ns(time.monotonic_ns()),
            end=SessionEnd.EXIT,
            loops=self.loops(),
            statistics=file.counters(),
        )
        run = RunFacts(config=self._config, session=ended)
        reporter = console(run)
        if reporter is not None:
            reporter.close(ended, [])

    def take_in(self) -> None:
        """Stores and shows what is in the flight file, at the end of the process, and removes it."""
        self.close()
        session = self._session
        with closing(open_store(Path(self._config.store or ""))) as opened:
            found = recover(opened, living=False, names=(f"{session.id}{SUFFIX}",))
        ended = next((one for one in found.sessions if one.id == session.id), session)
        reporter = console(RunFacts(config=self._config, session=ended))
        if reporter is not None:
            for stall in found.stalls:
                reporter.report(stall, 0)
            reporter.close(ended, found.stalls)

    def stalls(self) -> list[Stall]:
        """Those that are stored, and those that are in the flight file still; an id has one of them."""
        found = {stall.id: stall for stall in (*self._in_flight(), *self.stored())}
        return sorted(found.values(), key=lambda stall: stall.began_wall_ns)[-_STALLS_MAX:]

    def _in_flight(self) -> list[Stall]:
        file = self._flight()
        return [
            self._autopsy.judge(evidence, self._session, file.header.clock, StallState.ENDED)
            for _, evidence in file.stalls(frozenset())
            if evidence.end_ns is not None
        ]

    def stored(self) -> list[Stall]:
        folder = Path(self._config.store or "")
        if not folder.is_dir():
            return []
        with closing(open_store(folder)) as opened:
            return of_type(
                Stall, opened.reader.issues(replace(STALLS, session=self._session.id), _STALLS_MAX)
            )
