"""The engine of a program that judges its own stalls, put together, as far as it takes to record. Its drain
loads the rest (assembly.engine)."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from loopcanary.assembly.kept import OwnFacts, flight_folder, made_tracers
from loopcanary.engine.native import NativeBackend
from loopcanary.engine.recorder import feed_wanted
from loopcanary.engine.running import RunningEngine

if TYPE_CHECKING:
    from collections.abc import Callable

    from loopcanary._native import Native
    from loopcanary.engine.canary import Canary
    from loopcanary.engine.kept import LiveFacts
    from loopcanary.engine.parts import EngineParts, FileBackend, Plugged
    from loopcanary.model.config import Config
    from loopcanary.portable.backend import PortableBackend
    from loopcanary.protocols.plugins import Tracer


def make_judging(canary: Canary, native: Native | None) -> RunningEngine:
    """Not yet begun. It goes on with what the kept engine in force records, if there is one. `native`: None
    for the portable engine."""
    kept = canary.kept
    engine = "portable" if native is None else "native"
    facts: LiveFacts = OwnFacts(canary, engine=engine) if kept is None else kept.facts
    backend: FileBackend
    if native is None:
        backend = _portable_backend(canary.config, facts.session["id"])
    else:
        backend = NativeBackend(
            native,
            canary.config,
            folder=flight_folder(canary.config),
            session_id=facts.session["id"],
            begun=None if kept is None else kept.backend,
        )

    def make_parts() -> EngineParts:
        from loopcanary.assembly import engine

        return engine.make_parts(canary, backend, facts, native)

    return RunningEngine(
        backend,
        lambda: canary.load_on_drain(make_parts),
        facts=facts,
        plugged=_plugged_tracers(canary, native),
        native=native,
        boundary=canary.boundary,
        traced=canary.tracing,
    )


def _portable_backend(config: Config, session_id: str) -> PortableBackend:
    from loopcanary.model.hang_halves import HANG
    from loopcanary.portable.backend import PortableBackend

    feeder = None
    if config.sd_watchdog and (feed := feed_wanted(os.environ)) is not None:
        from loopcanary.engine.feeder import Feeder

        feeder = partial(Feeder, *feed)
    return PortableBackend(config, feeder=feeder, file=f"{flight_folder(config)}/{session_id}{HANG}")


def _plugged_tracers(canary: Canary, native: Native | None) -> Plugged | None:
    """Those that the kept engine has started; else new ones. They see the program from its first loop on."""
    if canary.kept is not None:
        return canary.kept.plugged
    return made_tracers(canary, native, _own_tracers(canary.config))


def _own_tracers(config: Config) -> dict[str, Callable[[], Tracer]]:
    """The built-in tracers that run in the program. Loads only those that the settings ask for."""
    if not (config.locks or config.windows_ns):
        return {}
    from loopcanary.assembly.tracing.in_program import lock_tracer, window_tracer

    makers = {"locks": (config.locks, lock_tracer), "windows": (config.windows_ns, window_tracer)}
    return {name: partial(make, config) for name, (is_wanted, make) in makers.items() if is_wanted}
