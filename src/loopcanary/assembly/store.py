"""Stores, and what dead and running processes left beside them."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from loopcanary import diagnosis, flight, store
from loopcanary.engine.flight_place import forgotten, place_in_memory
from loopcanary.model import Clock, Config, Session, Stall, StallEvidence, StallState
from loopcanary.store.recovery import flight_files  # now: the drain, which recovers, shall import nothing

CODE_PATHS = "code_paths"
SETTINGS = "settings"
STORE = "store"
"""Keys that the facts in a flight file have beside the session's own."""
_CLOCK_SLACK_NS = 5_000_000_000
"""btime of /proc/stat is in whole seconds, and the wall clock may have been set since the boot."""


def open_store(folder: Path, config: Config | None = None) -> store.Store:
    """The store in a folder; nothing is opened before it is needed."""
    config = config or Config()
    retention = store.Retention(
        age_ns=config.retention_age_ns, stalls=config.retention_stalls, bytes=config.retention_bytes
    )
    return store.Store(folder, retention=retention)


def recover(into: store.Store, own: Path | None = None, *, living: bool = True) -> store.Recovery:
    """Takes in what dead processes left in the store's folder, and looks at what running ones do now.

    `own`: the flight file of this process, where it has one. `living`: off for a start of an engine, which
    wants to know nothing of the processes beside it and shall not take longer the more there are.
    """
    autopsy = _Autopsy(own)
    forensics = store.Forensics(
        place=place_in_memory,
        open=autopsy.open,
        is_dead=autopsy.is_dead,
        judge=autopsy.judge,
        health=diagnosis.process_health,
        unreadable=(flight.FlightError, OSError),
    )
    found = flight_files.recover(into, forensics, living=living)
    if living:
        flight_files.settle(into, found, host=host_name(), is_gone=_is_gone)
        _give_memory_back(autopsy)
    return found


def _give_memory_back(autopsy: _Autopsy) -> None:
    """Removes what dead processes left in shared memory a month ago, and nobody came for: their stores are
    gone, or given up."""
    for path in forgotten(time.time()):
        with suppress(flight.FlightError, OSError), autopsy.open(path) as remains:
            if autopsy.is_dead(remains):
                path.unlink()


class _Autopsy:
    """Reads flight files of other processes, and judges by those processes' own paths and settings."""

    def __init__(self, own: Path | None) -> None:
        self._own = own
        self._opened: flight.FlightFile | None = None
        self._facts: dict[str, tuple[diagnosis.CodePaths, Config]] = {}

    def open(self, path: Path) -> flight.FlightFile:
        self._opened = flight.FlightFile.open(path)
        return self._opened

    def is_dead(self, remains: flight.FlightFile) -> bool:
        if remains.header.pid == os.getpid() and Path(remains.name) != self._own:
            # This process once was another program (exec), which left its file.
            return flight.liveness(remains.header) is flight.Liveness.RUNNING
        same_host = remains.facts().get("host") == host_name()
        alive = flight.liveness(remains.header, same_host=same_host)
        if alive is flight.Liveness.UNKNOWABLE:
            return flight.holds_lock(Path(remains.name)) is False
        if alive is flight.Liveness.RUNNING and flight.holds_lock(Path(remains.name)) is False:
            # It gave up the lock (a daemon closes all descriptors), or became another program (exec).
            return maps(remains.header.pid, remains.name) is False
        return alive is flight.Liveness.DEAD

    def judge(self, evidence: StallEvidence, session: Session, clock: Clock, state: StallState) -> Stall:
        if session.id not in self._facts and self._opened is not None:
            facts = self._opened.facts()
            self._facts[session.id] = paths_of(facts), config_of(facts)
        paths, config = self._facts.get(session.id, (diagnosis.CodePaths(), Config()))
        return diagnosis.diagnose(evidence, session, config, clock, state=state, paths=paths)


def host_name() -> str:
    """Name of this host, as sessions have it."""
    if hasattr(os, "uname"):
        return os.uname().nodename
    import platform  # only where the cheaper source is missing

    return platform.node()


def maps(pid: int, file: str) -> bool | None:
    """Whether the process has the file in its memory; None where it cannot be asked."""
    try:
        return os.fsencode(os.path.basename(file)) in Path(f"/proc/{pid}/maps").read_bytes()  # noqa: PTH119
    except OSError:
        return None


def paths_of(facts: dict[str, Any]) -> diagnosis.CodePaths:
    """Where the code of the process lies that wrote these facts."""
    paths = facts.get(CODE_PATHS)
    return diagnosis.CodePaths.from_json(paths) if isinstance(paths, dict) else diagnosis.CodePaths()


def config_of(facts: dict[str, Any]) -> Config:
    """Those of its settings that a verdict depends on."""
    settings = facts.get(SETTINGS)
    concern = settings.get("concern") if isinstance(settings, dict) else None
    names = tuple(name for name in concern if isinstance(name, str)) if isinstance(concern, list) else ()
    return Config(concern=names)


def _is_gone(session: Session) -> bool:
    """True only where no process has the session's number, or one that started after the session."""
    try:
        os.kill(session.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    started_ns = _process_started_wall_ns(session.pid)
    return started_ns is not None and started_ns > session.started_wall_ns + _CLOCK_SLACK_NS


def _process_started_wall_ns(pid: int) -> int | None:
    """When the process with this number started, to about a second; None where it cannot be told."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        boot_s = next(
            int(line.split()[1])
            for line in Path("/proc/stat").read_bytes().splitlines()
            if line.startswith(b"btime ")
        )
        return boot_s * 1_000_000_000 + int(fields[19]) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, StopIteration):
        return None
