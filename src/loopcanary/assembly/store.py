"""Stores, and what dead and running processes left beside them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from loopcanary import diagnosis, flight, store
from loopcanary.assembly import native_module
from loopcanary.assembly.roots_sources import RootsSources, is_root, is_roots
from loopcanary.diagnosis.code.ownership import Owner, Ownership
from loopcanary.engine.flight_place import forgotten, place_in_memory
from loopcanary.facts import OWN_CODE, pid_namespace
from loopcanary.flight.beside.calls import read_calls
from loopcanary.model import (
    Clock,
    Config,
    Issue,
    Session,
    Stall,
    StallEvidence,
    StallState,
    Startup,
    TraceFigures,
)
from loopcanary.model.hang_halves import HANG
from loopcanary.model.method_map import METHODS, START, remove_beside
from loopcanary.model.session import TaskSurvey
from loopcanary.model.trace_cells import TRACES
from loopcanary.pipeline.pipeline import ignores_kind
from loopcanary.source_text import FileSources, SourceReader

# Now: the drain, which recovers, shall import nothing.
from loopcanary.store.recovery import flight_files, flight_folder

CODE_PATHS = "code_paths"
SETTINGS = "settings"
STORE = "store"
"""Keys that the facts in a flight file have beside the session's own."""
_CLOCK_SLACK_NS = 5_000_000_000
"""btime of /proc/stat is in whole seconds, and the wall clock may have been set since the boot."""


def open_store(folder: Path, config: Config | None = None) -> store.Store:
    """The store in a folder; nothing is opened before it is needed."""
    return store.Store(folder, retention=retention_of(config or Config()))


def ignored_bugs(of: store.Store) -> set[str]:
    """Fingerprints of the bugs that people ignore; none where the store cannot be read. Raises nothing."""
    try:
        return {bug for bug, remark in of.reader.remarks().items() if remark.ignored}
    except (store.StoreError, OSError):
        return set()


def retention_of(config: Config) -> store.Retention:
    """What is kept of a program's stalls."""
    age_ns, size = config.retention
    return store.Retention(age_ns=age_ns, bytes=size)


def _as_it_is(stall: Stall) -> Stall:
    return stall


def recover(
    into: store.Store,
    own: Path | None = None,
    *,
    living: bool = True,
    names: Collection[str] | None = None,
    intercept: Callable[[Stall], Stall | None] = _as_it_is,
    ended_ns: int | None = None,
    sources: SourceReader | None = None,
) -> store.Recovery:
    """Takes in what dead processes left in the store's folder, and looks at what running ones do now.

    `own`: the flight file of this process, where it has one. `living`: off for a start of an engine, which
    wants to know nothing of the processes beside it and shall not take longer the more there are. `names`: of
    the files to deal with; None: all. `intercept`: gets each stall before it is stored, and may drop it.
    `ended_ns`: when the process of that one file was seen to have ended, monotonic; None: not known.
    `sources`: what is quoted of it, where it was root's while it lived; root quotes nothing else of the dead.
    """
    if sources is None and into.lender:
        sources = FileSources()  # nothing is stored, and `may_show` says what root shows
    autopsy = Autopsy(own, ended_ns, sources, into.folder)
    forensics = store.Forensics(
        place=place_in_memory,
        open=autopsy.open,
        is_dead=autopsy.is_dead,
        is_kept=partial(_is_kept, into.folder),
        hold=flight.hold_lock,
        judge=autopsy.judge,
        start=autopsy.start,
        is_wanted=autopsy.is_wanted,
        intercept=intercept,
        health=diagnosis.process_health,
        noted=partial(autopsy.noted, partial(_noted, into)),
        survey=autopsy.survey,
        unreadable=(flight.FlightError, OSError),
    )
    found = flight_files.recover(into, forensics, living=living, names=names)
    if living and not into.lender:
        flight_files.settle(into, found, host=host_name(), is_gone=_is_gone)
        _give_memory_back(autopsy)
    return found


def _is_kept(folder: Path, remains: flight.FlightFile) -> bool:
    """See Forensics. This process may be the keeper."""
    from loopcanary.keeper.seat import statuses

    others = (status for status in statuses(str(folder)) if status.get("pid") != os.getpid())
    watched = (status.get("watched") for status in others)
    return any(isinstance(pids, list) and remains.header.pid in pids for pids in watched)


def _noted(
    into: store.Store, remains: flight.FlightFile, session: Session, clock: Clock, stalls: Sequence[Stall]
) -> tuple[TraceFigures, Sequence[Issue]]:
    """See Forensics.noted."""
    path = remains.name.removesuffix(flight_folder.CLAIMED)
    if not os.path.exists(path + TRACES):  # noqa: PTH110 - most programs draw nothing
        return session.traces, ()
    from loopcanary.assembly.keeper.noted import left_behind

    return left_behind(into, path, session, clock, stalls)


def _give_memory_back(autopsy: Autopsy) -> None:
    """Removes what dead processes left in shared memory a month ago, and nothing has read since: their stores
    are gone, or given up."""
    from loopcanary.keeper.seat import forget_unused

    forget_unused(time.time())
    for path in forgotten(time.time()):
        with suppress(flight.FlightError, OSError), autopsy.open(path) as remains:
            if autopsy.is_dead(remains):
                path.unlink()
                remove_beside(str(path))


class Autopsy:
    """Reads flight files of other processes, and judges by those processes' own paths and settings."""

    def __init__(
        self,
        own: Path | None = None,
        ended_ns: int | None = None,
        sources: SourceReader | None = None,
        store: Path | None = None,
    ) -> None:
        """As `recover`; `store`: the folder of the one that it is for."""
        self._own = own
        self._ended_ns = ended_ns
        self._sources = sources or FileSources()
        if sources is None and store is not None and is_root():
            self._sources = RootsSources(self._sources, self._is_roots, store)
        self._opened: flight.FlightFile | None = None
        self._facts: dict[str, tuple[diagnosis.CodePaths, Config]] = {}

    @classmethod
    def of(cls, opened: flight.FlightFile) -> Autopsy:
        """The autopsy of a file that is open, and that others close."""
        made = cls()
        made._opened = opened
        return made

    def open(self, path: Path) -> flight.FlightFile:
        is_hang = path.name.removesuffix(flight_folder.CLAIMED).endswith(HANG)
        self._opened = (flight.HangFile if is_hang else flight.FlightFile).open(path)
        return self._opened

    def is_dead(self, remains: flight.FlightFile) -> bool:
        if remains.header.pid == os.getpid() and Path(remains.name) != self._own:
            # This process once was another program (exec), which left its file.
            return flight.liveness(remains.header) is flight.Liveness.RUNNING
        alive = flight.liveness(remains.header)
        if alive is flight.Liveness.UNKNOWABLE and remains.facts().get("host") == host_name():
            alive = flight.liveness(remains.header, same_host=True)
        if alive is flight.Liveness.UNKNOWABLE:
            return flight.holds_lock(Path(remains.name)) is False
        if alive is flight.Liveness.RUNNING and flight.holds_lock(Path(remains.name)) is False:
            # It gave up the lock (a daemon closes all descriptors), or became another program (exec).
            return remains.is_mapped and flight.maps(remains.header.pid, remains.name) is False
        return alive is flight.Liveness.DEAD

    def judge(self, evidence: StallEvidence, session: Session, clock: Clock, state: StallState) -> Stall:
        paths, config = self._facts_of(session.id)
        stall = diagnosis.diagnose(
            evidence, session, config, clock, state=state, paths=paths, sources=self._sources
        )
        if self._opened is None:
            return stall
        return marked(with_calls(stall, evidence, self._opened, config, paths), self._opened)

    def start(self, remains: flight.FlightFile, session: Session, last_ns: int | None) -> Startup | None:
        """See Forensics."""
        if not os.path.exists(remains.name.removesuffix(flight_folder.CLAIMED) + START):  # noqa: PTH110
            return None
        from loopcanary.assembly.beside import start_in

        return start_in(remains, session, config_of(remains.facts()), last_ns=last_ns)

    def is_wanted(self, issue: Issue) -> bool:
        """As a keeper decides; the settings of a process with a drain of its own are not all known here."""
        paths, config = self._facts_of(issue.session)
        if not isinstance(issue, Stall):
            return not (config.delete_ignored and ignores_kind(config, issue))
        if diagnosis.is_meant(issue, paths):
            return False
        # What a process died of is always reported.
        is_kept = issue.state.is_of_process or not config.delete_ignored
        return is_kept or diagnosis.drop_reason(issue, config, paths) is None

    def noted(
        self,
        traces: Callable[
            [flight.FlightFile, Session, Clock, Sequence[Stall]], tuple[TraceFigures, Sequence[Issue]]
        ],
        remains: flight.FlightFile,
        *about: Any,
    ) -> tuple[TraceFigures, Sequence[Issue]]:
        """See Forensics.noted. `traces`: what tracers noted; beside it are slow methods."""
        session, _, stalls = about
        config = self._facts_of(session.id)[1]
        figures, issues = traces(remains, *about)
        return figures, [
            *issues,
            *self._slow_calls(remains, session),
            *self._deadlocks(remains, session),
            *(slow for stall in stalls for slow in slow_methods(stall, session, config)),
        ]

    def _slow_calls(self, remains: flight.FlightFile, session: Session) -> Sequence[Issue]:
        if not os.path.exists(remains.name.removesuffix(flight_folder.CLAIMED) + METHODS):  # noqa: PTH110
            return ()
        from loopcanary.assembly.beside import SlowCallIssues

        paths, config = self._facts_of(session.id)
        last_ns = self._ended_ns or remains.header.heartbeat_ns
        owns = owned_by(config, paths)
        return SlowCallIssues().left_behind(remains, session, config, owns, last_ns=last_ns)

    def _deadlocks(self, remains: flight.FlightFile, session: Session) -> Sequence[Issue]:
        from loopcanary.assembly.looks import FoundDeadlocks

        paths, config = self._facts_of(session.id)
        return FoundDeadlocks().new(remains, session, config, owned_by(config, paths))

    def survey(self, remains: flight.FlightFile, session: Session) -> TaskSurvey | None:
        """See Forensics."""
        from loopcanary.assembly.looks import survey_of

        paths, config = self._facts_of(session.id)
        return survey_of(remains, owned_by(config, paths))

    def _is_roots(self) -> bool:
        remains = self._opened
        return remains is not None and is_roots(remains.header.pid, remains.name)

    def _facts_of(self, session: str) -> tuple[diagnosis.CodePaths, Config]:
        if session not in self._facts and self._opened is not None:
            facts = self._opened.facts()
            self._facts[session] = paths_of(facts), config_of(facts)
        return self._facts.get(session, (diagnosis.CodePaths(), Config()))


def with_calls(
    stall: Stall,
    evidence: StallEvidence,
    remains: flight.FlightFile,
    config: Config,
    paths: diagnosis.CodePaths,
) -> Stall:
    """The stall with what its thread called in it, where that was traced. `remains`: the open flight file of
    its process, which may run or be dead; what lies beside it is read."""
    path = remains.name.removesuffix(flight_folder.CLAIMED)
    if not os.path.exists(path + METHODS):  # noqa: PTH110 - most programs trace no calls
        return stall
    try:
        call_tree = native_module().call_tree
    except ImportError:
        return stall
    calls = read_calls(path, remains.tick_clock, evidence, call_tree, owned_by(config, paths))
    return stall if calls is None else replace(stall, calls=calls)


def owned_by(config: Config, paths: diagnosis.CodePaths) -> Callable[[str], bool]:
    """Says of files whether they are the program's own code."""
    owners = Ownership(paths, config.concern)
    return lambda file: owners.of(file) is Owner.OWN


def marked(stall: Stall, remains: flight.FlightFile) -> Stall:
    """The stall, which this process has judged; marked where the program's own code wanted to see it."""
    has_own_code = isinstance(remains.facts().get(OWN_CODE), str)
    return diagnosis.not_intercepted(stall) if has_own_code else stall


def slow_methods(stall: Stall, session: Session, config: Config) -> Sequence[Issue]:
    """The slow method that the stall is, too; empty for most, which load nothing for it."""
    if stall.calls is None or stall.duration_ns < config.slow_method_ns:
        return ()
    from loopcanary.tracers.slow_methods import slow_methods_of

    return slow_methods_of(stall, session, config.slow_method_ns)


def host_name() -> str:
    if hasattr(os, "uname"):
        return os.uname().nodename
    import platform  # only where the cheaper source is missing

    return platform.node()


def paths_of(facts: dict[str, Any]) -> diagnosis.CodePaths:
    """Where the code of the process lies that wrote these facts."""
    paths = facts.get(CODE_PATHS)
    return diagnosis.CodePaths.from_json(paths) if isinstance(paths, dict) else diagnosis.CodePaths()


def config_of(facts: dict[str, Any]) -> Config:
    settings = facts.get(SETTINGS)
    if not isinstance(settings, dict):
        return Config()
    from loopcanary.config import resolve

    told = {name: text for name, text in settings.items() if isinstance(name, str) and isinstance(text, str)}
    # A value that cannot be used costs that value, and no more.
    return resolve({"production": True}, told, None)


def _is_gone(session: Session) -> bool:
    """True only where no process has the session's number, or one that started after the session. In another
    PID namespace numbers say nothing: there it is gone if it ran before this boot."""
    if session.pid_namespace not in (0, pid_namespace()):
        booted_ns = _booted_wall_ns()
        return booted_ns is not None and session.started_wall_ns < booted_ns - _CLOCK_SLACK_NS
    try:
        os.kill(session.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    started_ns = _process_started_wall_ns(session.pid)
    return started_ns is not None and started_ns > session.started_wall_ns + _CLOCK_SLACK_NS


def _process_started_wall_ns(pid: int) -> int | None:
    """Start of the process with this PID, in ns since 1970, right to about a second; None if it is
    unknown."""
    booted_ns = _booted_wall_ns()
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        since_boot_ns = int(fields[19]) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None
    return None if booted_ns is None else booted_ns + since_boot_ns


def _booted_wall_ns() -> int | None:
    try:
        lines = Path("/proc/stat").read_bytes().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(b"btime ")) * 1_000_000_000
    except (OSError, ValueError, IndexError, StopIteration):
        return None
