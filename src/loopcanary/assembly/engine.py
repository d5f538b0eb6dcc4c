"""What a running engine is made of. Loaded when the first loop begins, or at once where a program installs
loopcanary by itself."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loopcanary import diagnosis, flight, store
from loopcanary.assembly.kept import NO_KEEPER
from loopcanary.assembly.run_facts import RunFacts
from loopcanary.assembly.store import (
    CODE_PATHS,
    SETTINGS,
    STORE,
    open_store,
    owned_by,
    recover,
    slow_methods,
    with_calls,
)
from loopcanary.config import settings_as_environment
from loopcanary.engine.canary import Canary
from loopcanary.engine.in_process.guards import DebuggerGuard, StormGuard
from loopcanary.engine.in_process.native import NativeBackend
from loopcanary.engine.in_process.parts import EngineParts, FileBackend, Plugged
from loopcanary.engine.in_process.pipeline import Pipeline, Stations
from loopcanary.engine.in_process.running import RunningEngine, as_it_is_now
from loopcanary.facts import code_paths, session_facts
from loopcanary.model import (
    Clock,
    Config,
    LagIssue,
    Session,
    Stall,
    StallEvidence,
    StallState,
    Startup,
)
from loopcanary.model.config import HANG_NS
from loopcanary.model.method_map import START
from loopcanary.protocols.plugins import Interceptor, Reporter, Tracer
from loopcanary.registry import INTERCEPTORS, REGISTRY, REPORTERS, TRACERS
from loopcanary.wire import from_wire, to_wire

if TYPE_CHECKING:
    from loopcanary._native import Native


def make_engine(canary: Canary, native: Native | None) -> RunningEngine:
    """Not yet begun. `native`: None for the portable engine."""
    parts = _make_parts(canary, native)
    return RunningEngine(parts, native=native, boundary=canary.boundary, traced=canary.tracing)


def _make_parts(canary: Canary, native: Native | None) -> EngineParts:
    config, kept = canary.config, canary.kept
    diagnosis.prepare()
    session = from_wire(Session, session_facts(config)) if kept is None else kept.session
    now_ns = time.monotonic_ns()
    clock = Clock(monotonic_ns=now_ns, wall_ns=time.time_ns())
    folder = Path(config.store) if config.store else store.locate().folder
    backend = _backend(canary, native, session, folder)
    session = replace(session, engine=backend.name)
    sink = open_store(folder, config)
    paths = _PathsOnce()

    def judge(evidence: StallEvidence, state: StallState) -> Stall:
        now = as_it_is_now(session)
        stall = diagnosis.diagnose(evidence, now, config, clock, state=state, paths=paths.get())
        return _with_own_calls(stall, evidence, backend, config, paths) if config.methods else stall

    of_session = partial(_own_facts, session, config, paths, folder) if kept is None else kept.facts
    reporters, interceptors, plugged = _plugged_in(canary, native, session)
    stations = Stations(
        judge=judge,
        drop_reason=lambda stall: diagnosis.drop_reason(stall, config, paths.get()),
        keep_ignored=config.keep_ignored,
        interceptors=interceptors,
        sink=sink,
        # Without a flight file nothing else says so while the program runs, and after it was killed.
        derived=partial(slow_methods, session=session, config=config),
        introduce=None if isinstance(backend, NativeBackend) else partial(sink.put_session, session),
        reporters=reporters,
        forget=partial(_forget_hang, sink) if kept is not None and kept.has_keeper else None,
        debugger=DebuggerGuard(),
        while_debugging=config.while_debugging,
        storm=StormGuard(config.stalls_per_minute, now_ns),
        issue_storm=StormGuard(config.stalls_per_minute, now_ns),
    )
    return EngineParts(
        session=session,
        clock=clock,
        backend=backend,
        pipeline=Pipeline(stations, canary.boundary, time.monotonic_ns),
        sink=sink,
        reporters=reporters,
        health=diagnosis.process_health,
        facts=lambda: {**of_session(), **canary.tracing.facts(), NO_KEEPER: canary.no_keeper},
        plugged=plugged,
        slow_calls=_own_slow_calls(backend, session, config, paths) if config.methods else _none,
        start=lambda is_end: _own_start(backend, session, config, is_end=is_end),
        recover=lambda: _begin(canary, session, sink, backend),
    )


def _own_facts(session: Session, config: Config, paths: _PathsOnce, folder: Path) -> dict[str, Any]:
    return {
        **to_wire(as_it_is_now(session)),
        CODE_PATHS: paths.refresh(),
        SETTINGS: {"concern": list(config.concern), **settings_as_environment(config)},
        STORE: str(folder),
    }


def _begin(canary: Canary, session: Session, sink: store.Store, backend: FileBackend) -> None:
    """The first thing that the drain does."""
    if set(canary.config.notify) - {"bell"}:
        from loopcanary.assembly.notify_start import start_follower

        canary.boundary.call("notifications", start_follower, canary, session, sink.folder)
    _recover(sink, backend)


def _recover(sink: store.Store, backend: FileBackend) -> None:
    """Most starts find nothing: then nothing is opened."""
    folder = sink.folder / store.FLIGHT_FOLDER
    own = Path(backend.file) if isinstance(backend, NativeBackend) and backend.file else None
    ours = {own.name, own.name.partition("-")[2].partition("-")[2]} if own is not None else set()
    # Not pathlib's, which raises where a folder above may not be entered.
    is_there = os.path.isdir(folder)  # noqa: PTH112
    if is_there and any(entry.name not in ours for entry in folder.iterdir()):
        recover(sink, own, living=False)


def _with_own_calls(
    stall: Stall, evidence: StallEvidence, backend: FileBackend, config: Config, paths: _PathsOnce
) -> Stall:
    if not isinstance(backend, NativeBackend) or backend.file is None:
        return stall
    with flight.FlightFile.open(backend.file) as own:
        return with_calls(stall, evidence, own, config, paths.get())


def _own_slow_calls(
    backend: FileBackend, session: Session, config: Config, paths: _PathsOnce
) -> Callable[[], Sequence[LagIssue]]:
    from loopcanary.assembly.slow_calls import TakenSlowCalls

    taken = TakenSlowCalls()

    def new() -> Sequence[LagIssue]:
        if not isinstance(backend, NativeBackend) or backend.file is None:
            return ()
        with flight.FlightFile.open(backend.file) as own:
            if not taken.are_there(own):
                return ()
            return taken.new(own, session, config, owned_by(config, paths.get()))

    return new


def _none() -> Sequence[LagIssue]:
    return ()


def _forget_hang(sink: store.Store, stall: Stall) -> None:
    """A keeper has stored it while it went on; then the program's own code dropped it."""
    if stall.duration_ns >= HANG_NS:
        sink.maintenance.delete_records([stall.id])


def _own_start(backend: FileBackend, session: Session, config: Config, *, is_end: bool) -> Startup | None:
    file = backend.file if isinstance(backend, NativeBackend) else None
    if file is None or not os.path.exists(file + START):  # noqa: PTH110 - most processes have none
        return None
    from loopcanary.assembly.keeper.startup_notes import start_in

    with flight.FlightFile.open(file) as own:
        return start_in(own, session, config, last_ns=time.monotonic_ns() if is_end else None)


class _PathsOnce:
    """Where the program's code lies, looked up when it is first needed, and again when a loop runs."""

    def __init__(self) -> None:
        self._told: dict[str, list[str] | str] = {}
        self._paths: diagnosis.CodePaths | None = None

    def get(self) -> diagnosis.CodePaths:
        if self._paths is None:
            self._paths = diagnosis.CodePaths.from_json(self._told or self.refresh())
        return self._paths

    def refresh(self) -> dict[str, list[str] | str]:
        """As they are written into the flight file: the loop that begins waits for it."""
        self._told, self._paths = code_paths(), None
        return self._told


def _backend(canary: Canary, native: Native | None, session: Session, folder: Path) -> FileBackend:
    if native is None:
        from loopcanary.assembly.late_portable import portable_backend

        return portable_backend(canary.config) if canary.kept is None else canary.kept.backend
    return NativeBackend(
        native,
        canary.config,
        folder=str(folder / store.FLIGHT_FOLDER),
        session_id=session.id,
        open_flight=flight.open_own,
        begun=None if canary.kept is None else canary.kept.backend,
        has_keeper=canary.kept is not None and canary.no_keeper is None,
    )


def _plugged_in(
    canary: Canary, native: Native | None, session: Session
) -> tuple[list[Reporter], list[Interceptor], Plugged]:
    """Reporters; the live list of interceptors: later ones count at once; tracers."""
    run = RunFacts(config=canary.config, session=session)
    for _, interceptor in REGISTRY.loaded(INTERCEPTORS):
        REGISTRY.add_interceptor(interceptor)
    made = [
        canary.boundary.call(f"reporter {one.name}", make, run) for one, make in REGISTRY.loaded(REPORTERS)
    ]
    reporters = [reporter for reporter in made if reporter is not None]
    return (
        reporters,
        REGISTRY.interceptors,
        _plugged_tracers(
            canary,
            {one.name: make for one, make in REGISTRY.plugged(TRACERS)} | _own_tracers(canary.config, native),
        ),
    )


def _own_tracers(config: Config, native: Native | None) -> dict[str, Callable[[], Tracer]]:
    """Those of ours that work in the program: it loads what the settings ask for, and nothing else."""
    makers: dict[str, Callable[[], Tracer]] = {}
    if config.locks:
        from loopcanary.assembly.tracing.locks import lock_tracer

        makers["locks"] = partial(lock_tracer, config)
    if config.lock_order and native is not None:
        from loopcanary.assembly.tracing.orders import order_tracer

        makers["orders"] = partial(order_tracer, config, native)
    if config.windows_ns:
        from loopcanary.assembly.tracing.windows import window_tracer

        makers["windows"] = partial(window_tracer, config)
    return makers


def _plugged_tracers(canary: Canary, makers: dict[str, Callable[[], Tracer]]) -> Plugged:
    """Most processes have none, and load nothing for them."""
    if not makers:
        return _NO_TRACERS
    from loopcanary.assembly.tracing.all import plugged_tracers

    return plugged_tracers(canary, makers)


class _NoTracers:
    """No third party plugs any in."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def close(self) -> None: ...

    def forget(self) -> None: ...

    def counts(self) -> dict[str, int]:
        return {}


_NO_TRACERS = _NoTracers()
