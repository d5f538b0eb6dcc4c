"""What the flight file and the store say of this process, whose stalls a keeper judges. Loaded when asked;
the diagnosis and the store are loaded for stalls only."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from loopcanary.diagnosis.health import process_health
from loopcanary.engine.recorder import SUFFIX, Recorder
from loopcanary.flight.reader import FlightFile, open_own
from loopcanary.model import Config, LoopHealth, Session, SessionEnd, Stall, StallState
from loopcanary.wire import from_wire, to_wire

_STALLS_MAX = 1_000


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

    # ---- figures ----------------------------------------------------------------------------

    def loops(self) -> tuple[LoopHealth, ...]:
        return process_health(self._flight().lanes(), time.monotonic_ns())

    def statistics(self) -> dict[str, Any]:
        counts = self._flight().counters()
        loops = [to_wire(loop) for loop in self.loops()]
        return {**counts, "stalls_reported": counts["stalls_recorded"], "loops": loops}

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
        self._say(ended, [])

    # ---- stalls -----------------------------------------------------------------------------

    def stalls(self) -> list[Stall]:
        """The last of them, stored or still in the flight file, oldest first; an id has one."""
        found = {stall.id: stall for stall in (*self._in_flight(), *self.stored())}
        return sorted(found.values(), key=lambda stall: stall.began_wall_ns)[-_STALLS_MAX:]

    def _in_flight(self) -> list[Stall]:
        from loopcanary.assembly.store import Autopsy

        file = self._flight()
        autopsy = Autopsy.of(file)
        return [
            autopsy.judge(evidence, self._session, file.header.clock, StallState.ENDED)
            for _, evidence in file.stalls(frozenset())
            if evidence.end_ns is not None
        ]

    def stored(self) -> list[Stall]:
        from loopcanary.assembly.store import open_store
        from loopcanary.model.search import STALLS, of_type

        folder = Path(self._config.store or "")
        if not folder.is_dir():
            return []
        with closing(open_store(folder)) as opened:
            query = replace(STALLS, session=self._session.id)
            return of_type(Stall, opened.reader.issues(query, _STALLS_MAX))

    def recover(self) -> bool:
        """Stores and shows what is in the flight file, at the end of the process, and removes it. False:
        another process has it in hand."""
        from loopcanary.assembly.store import open_store, recover

        with closing(open_store(Path(self._config.store or ""))) as opened:
            found = recover(opened, living=False, names=(f"{self._session.id}{SUFFIX}",))
        ended = next((one for one in found.sessions if one.id == self._session.id), None)
        if ended is not None:
            self._say(ended, found.stalls)
        return ended is not None

    def _say(self, ended: Session, stalls: Sequence[Stall]) -> None:
        from loopcanary.assembly.run_facts import RunFacts
        from loopcanary.reporters.wanted import console

        reporter = console(RunFacts(config=self._config, session=ended))
        if reporter is not None:
            for stall in stalls:
                reporter.report(stall, 0)
            reporter.close(ended, stalls)
