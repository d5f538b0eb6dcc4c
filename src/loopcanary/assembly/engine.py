"""What the drain judges with, put together. Loaded on the drain, where the program judges its own stalls."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loopcanary import diagnosis, flight, store
from loopcanary.assembly.run_facts import RunFacts
from loopcanary.assembly.store import ignored_bugs, open_store, owned_by, recover, slow_methods, with_calls
from loopcanary.engine.apart import Apart, ApartReporter
from loopcanary.engine.canary import Canary
from loopcanary.engine.native import NativeBackend
from loopcanary.engine.parts import EngineParts, FileBackend
from loopcanary.engine.running import as_it_is_now
from loopcanary.engine.threads import PythonThread, QuietThread
from loopcanary.kinds import stall as _stall  # noqa: F401 - the registry names it: not to be loaded in a stall
from loopcanary.model import (
    Clock,
    Config,
    LagIssue,
    Session,
    Stall,
    StallEvidence,
    Startup,
)
from loopcanary.model.method_map import START
from loopcanary.pipeline.guards import DebuggerGuard, StormGuard
from loopcanary.pipeline.pipeline import Pipeline, Stations
from loopcanary.protocols.plugins import Interceptor, Reporter
from loopcanary.registry import INTERCEPTORS, REGISTRY, REPORTERS
from loopcanary.source_text import FileSources
from loopcanary.wire import from_wire

if TYPE_CHECKING:
    from loopcanary._native import Native
    from loopcanary.engine.kept import LiveFacts
    from loopcanary.notifications.notifier import Notifier


def make_parts(canary: Canary, backend: FileBackend, facts: LiveFacts, native: Native | None) -> EngineParts:
    """Makes the parts for a backend that runs. `native`: None for the portable engine. On the drain
    thread."""
    config, store_folder = canary.config, canary.config.store
    assert store_folder is not None
    if isinstance(backend, NativeBackend):
        backend.open(flight.open_own)
    diagnosis.prepare()
    with suppress(ImportError):
        import sqlite3  # noqa: F401 - the store does when it is opened: the program may be elsewhere by then
    session = from_wire(Session, facts.session)
    now_ns = time.monotonic_ns()
    clock = Clock(monotonic_ns=now_ns, wall_ns=time.time_ns())
    sink = open_store(Path(store_folder), config)
    paths = _PathsOnce(facts)
    reporters, interceptors = _plugged_in(canary, native, session)
    notifier = None
    with canary.boundary.until_failure("notifications") as is_on:
        if is_on:
            notifier = _notifier(canary, native, sink)
    if notifier is not None:
        reporters.append(notifier.reporter(lambda: session))
    stations = Stations(
        config=config,
        clock=clock,
        session=lambda: as_it_is_now(session),
        paths=paths.get,
        sources=FileSources(),
        add_calls=partial(_with_own_calls, backend=backend, config=config, paths=paths),
        interceptors=interceptors,
        sink=sink,
        # Without a flight file nothing else says so while the program runs, and after it was killed.
        derived=partial(slow_methods, session=session, config=config),
        completed_hang=_completed_hang,
        introduce=None if isinstance(backend, NativeBackend) else partial(sink.put_session, session),
        reporters=reporters,
        debugger=DebuggerGuard(),
        storm=StormGuard(config.stalls_per_minute, now_ns),
        issue_storm=StormGuard(config.stalls_per_minute, now_ns),
    )
    return EngineParts(
        session=session,
        clock=clock,
        pipeline=Pipeline(stations, canary.boundary, time.monotonic_ns),
        sink=sink,
        reporters=reporters,
        health=diagnosis.process_health,
        beside_stalls=_beside_stalls(backend, session, config, paths),
        start=lambda is_end: _own_start(backend, session, config, is_end=is_end),
        recover=lambda: _recover(sink, backend, notifier),
        notifier=notifier,
    )


def _recover(sink: store.Store, backend: FileBackend, notifier: Notifier | None) -> None:
    """The first thing that the drain does. Most starts find nothing: then nothing is opened."""
    folder = sink.folder / store.FLIGHT_FOLDER
    own = Path(backend.file) if backend.file else None
    ours = {own.name, own.name.partition("-")[2].partition("-")[2]} if own is not None else set()
    # Not pathlib's, which raises where a folder above may not be entered.
    is_there = os.path.isdir(folder)  # noqa: PTH112
    if is_there and any(entry.name not in ours for entry in folder.iterdir()):
        found = recover(sink, own, living=False)
        if notifier is not None:
            notifier.hear_all([*found.stalls, *found.issues], found.sessions)


def _notifier(canary: Canary, native: Native | None, sink: store.Store) -> Notifier | None:
    """None: the settings ask for no notifications, and most programs load nothing of them."""
    if not set(canary.config.notify) - {"bell"}:
        return None
    from loopcanary.notifications.notifier import Notifier

    made = Notifier(
        sink.folder,
        partial(ignored_bugs, sink),
        partial(PythonThread, name="loopcanary-notify") if native is None else partial(QuietThread, native),
    )
    made.ask(canary.config, canary.boundary.tell)
    return made


def _with_own_calls(
    stall: Stall, evidence: StallEvidence, backend: FileBackend, config: Config, paths: _PathsOnce
) -> Stall:
    if not config.methods or not isinstance(backend, NativeBackend) or backend.file is None:
        return stall
    with flight.FlightFile.open(backend.file) as own:
        return with_calls(stall, evidence, own, config, paths.get())


def _beside_stalls(
    backend: FileBackend, session: Session, config: Config, paths: _PathsOnce
) -> Callable[[], Sequence[LagIssue]]:
    if not isinstance(backend, NativeBackend):
        return tuple
    from loopcanary.assembly.beside import SlowCallIssues
    from loopcanary.assembly.looks import FoundDeadlocks

    calls, deadlocks = SlowCallIssues(), FoundDeadlocks()

    def new() -> Sequence[LagIssue]:
        own = backend.flight
        if own is None:
            return ()
        owns = partial(_owns, config, paths)
        found = list(deadlocks.new(own, session, config, owns))
        if config.methods and calls.are_there(own):
            found += calls.new(own, session, config, owns)
        return found

    return new


def _owns(config: Config, paths: _PathsOnce, file: str) -> bool:
    return owned_by(config, paths.get())(file)


def _completed_hang(found: LagIssue, session: Session, serial: int) -> LagIssue:
    from loopcanary.assembly.beside import completed_hang

    return completed_hang(found, session, serial)


def _own_start(backend: FileBackend, session: Session, config: Config, *, is_end: bool) -> Startup | None:
    file = backend.file if isinstance(backend, NativeBackend) else None
    if file is None or not os.path.exists(file + START):  # noqa: PTH110 - most processes have none
        return None
    from loopcanary.assembly.beside import start_in

    with flight.FlightFile.open(file) as own:
        return start_in(own, session, config, last_ns=time.monotonic_ns() if is_end else None)


class _PathsOnce:
    """Where the program's code lies, read anew when a loop runs."""

    def __init__(self, facts: LiveFacts) -> None:
        self._facts = facts
        self._told: dict[str, Any] = {}
        self._paths: diagnosis.CodePaths | None = None

    def get(self) -> diagnosis.CodePaths:
        told = self._facts.code_paths()
        if self._paths is None or told is not self._told:
            self._told, self._paths = told, diagnosis.CodePaths.from_json(told)
        return self._paths


def _plugged_in(
    canary: Canary, native: Native | None, session: Session
) -> tuple[list[Reporter], list[Interceptor]]:
    """Reporters; the live list of interceptors: later ones count at once."""
    run = RunFacts(config=canary.config, session=session)
    for _, interceptor in REGISTRY.loaded(INTERCEPTORS):
        REGISTRY.add_interceptor(interceptor)
    apart = Apart(native, canary.boundary.tell)
    made = []
    for one, make in REGISTRY.loaded(REPORTERS):
        making = partial(make, run) if one.is_built_in else partial(apart.bounded, partial(make, run))
        reporter = None
        with canary.boundary.until_failure(f"reporter {one.name}") as is_on:
            if is_on:
                reporter = making()
        if reporter is not None and not one.is_built_in:
            # What it reports is reported on one thread, the drain.
            direct = ("name", "report", "recall")
            reporter = ApartReporter(reporter, apart.call, direct=direct)
        made.append(reporter)
    return [reporter for reporter in made if reporter is not None], REGISTRY.interceptors
