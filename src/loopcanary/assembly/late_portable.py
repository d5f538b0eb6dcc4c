"""The portable engine that loads nothing of a verdict before its first stall, put together."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from loopcanary.assembly.kept import FLIGHT_FOLDER
from loopcanary.engine.canary import Canary
from loopcanary.engine.late_portable import LatePortable
from loopcanary.facts import session_facts
from loopcanary.model import Config
from loopcanary.portable.backend import PortableBackend
from loopcanary.registry import REGISTRY, REPORTERS

if TYPE_CHECKING:
    from loopcanary.engine.feeder import Feeder
    from loopcanary.model import LoopHealth, Session, Stall


def make_late(canary: Canary) -> LatePortable:
    """Not yet started."""
    config = canary.config
    backend, session = portable_backend(config), session_facts(config, engine="portable")
    return LatePortable(
        backend,
        canary.boundary,
        folder=os.path.join(config.store or "", FLIGHT_FOLDER),  # noqa: PTH118 - as recorder has it
        facts=lambda: session,
        traced=canary.tracing,
        figures=lambda: PortableFigures(backend, session),
        take_over=lambda gives_way: canary.take_over(gives_way=gives_way),
        tells_end=any(not one.is_built_in for one in REGISTRY.of(REPORTERS)),
    )


def portable_backend(config: Config) -> PortableBackend:
    """Not yet started."""
    return PortableBackend(config, feeder=_feeder() if config.sd_watchdog else None)


def _feeder() -> Callable[..., Feeder] | None:
    """None: no service manager waits for this process."""
    from loopcanary.engine.feeder import Feeder
    from loopcanary.engine.service_manager import feed_wanted

    feed = feed_wanted(os.environ)
    return None if feed is None else partial(Feeder, *feed)


class PortableFigures:
    """See engine.kept.OwnFigures."""

    def __init__(self, backend: PortableBackend, session: dict[str, Any]) -> None:
        self._backend = backend
        self._session = session

    def session(self) -> Session:
        from loopcanary.model import Session
        from loopcanary.wire import from_wire

        return from_wire(Session, self._session)

    def close(self) -> None:
        """Nothing is open."""

    def loops(self) -> tuple[LoopHealth, ...]:
        from loopcanary.diagnosis.health.pools import process_health

        return process_health(self._backend.totals(), time.monotonic_ns())

    def loops_as_told(self) -> list[dict[str, Any]]:
        from loopcanary.wire import to_wire

        return [to_wire(loop) for loop in self.loops()]

    def statistics(self) -> dict[str, Any]:
        return {**self._backend.statistics()}

    def stall_reader(self) -> Callable[[], list[Stall]]:
        """None was judged yet."""
        return list
