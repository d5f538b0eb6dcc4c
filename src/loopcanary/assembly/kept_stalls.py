"""The stalls of this process, which a keeper takes: of the store, and of the flight file still."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

from loopcanary.assembly.run_facts import RunFacts
from loopcanary.assembly.store import Autopsy, open_store, recover
from loopcanary.engine.recorder import SUFFIX
from loopcanary.flight.reader import FlightFile
from loopcanary.model import Config, Session, Stall, StallState
from loopcanary.model.search import STALLS, of_type
from loopcanary.reporters.wanted import console

_STALLS_MAX = 1_000


def all_stalls(config: Config, session: Session, file: FlightFile) -> list[Stall]:
    """The last of them, oldest first; an id has one."""
    found = {stall.id: stall for stall in (*_in_flight(session, file), *stored(config, session))}
    return sorted(found.values(), key=lambda stall: stall.began_wall_ns)[-_STALLS_MAX:]


def _in_flight(session: Session, file: FlightFile) -> list[Stall]:
    autopsy = Autopsy.of(file)
    return [
        autopsy.judge(evidence, session, file.header.clock, StallState.ENDED)
        for _, evidence in file.stalls(frozenset())
        if evidence.end_ns is not None
    ]


def stored(config: Config, session: Session) -> list[Stall]:
    """Those that a keeper has stored."""
    folder = Path(config.store or "")
    if not folder.is_dir():
        return []
    with closing(open_store(folder)) as opened:
        return of_type(Stall, opened.reader.issues(replace(STALLS, session=session.id), _STALLS_MAX))


def take_in(config: Config, session: Session) -> bool:
    """Stores and shows what is in the flight file, at the end of the process, and removes it. False: another
    process has it in hand."""
    with closing(open_store(Path(config.store or ""))) as opened:
        found = recover(opened, living=False, names=(f"{session.id}{SUFFIX}",))
    ended = next((one for one in found.sessions if one.id == session.id), None)
    if ended is None:
        return False
    reporter = console(RunFacts(config=config, session=ended))
    if reporter is not None:
        for stall in found.stalls:
            reporter.report(stall, 0)
        reporter.close(ended, found.stalls)
    return True
