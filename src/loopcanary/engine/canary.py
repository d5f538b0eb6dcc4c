"""The canary: one engine in one process, from arming to the end.

    armed      the loop kinds are patched; nothing else is done until a loop runs
    running    flight file, watchdog, drain
    stopped    everything is given back

All methods are called under the GIL, on any thread; `arm`, `start` and `stop` exclude each other.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, Protocol

from loopcanary.engine import scopes
from loopcanary.engine.boundary import Boundary
from loopcanary.engine.drain import Drain
from loopcanary.engine.pipeline import Pipeline
from loopcanary.model import Clock, Config, LaneTotals, LoopHealth, Session, SessionEnd, Stall
from loopcanary.protocols import Backend, Probe, Reporter, Sink


class FileBackend(Backend, Protocol):
    """A backend that may keep a flight file."""

    def set_facts(self, facts: dict[str, Any]) -> bool:
        """Stores the session's facts beside the evidence."""

    def discard(self) -> None:
        """Removes the evidence: it has been taken."""

    def let_go(self) -> None:
        """Leaves the evidence to another process."""

    def loop_started(self, loop: Any, thread_ident: int) -> None:
        """The portable engine: a loop is about to run on this thread."""

    def loop_stopped(self, loop: Any) -> None:
        """The portable engine: the loop runs no more."""

    @property
    def listener(self) -> scopes.Listener:
        """Whom `scopes` tell of scenes and work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a running canary is made of; `assembly` makes it."""

    session: Session
    clock: Clock
    backend: FileBackend
    pipeline: Pipeline
    sink: Sink
    reporters: Sequence[Reporter]
    health: Callable[[LaneTotals, int], LoopHealth]
    facts: Callable[[], dict[str, Any]]
    recover: Callable[[], object]
    """Takes in what earlier processes left with this store; called once, on the drain thread."""
    notices: Sequence[str] = ()


class Canary:
    """The engine of this process. Made by `assembly`; `loopcanary.install` gives it out."""

    def __init__(
        self,
        config: Config,
        *,
        native: ModuleType | None,
        probes: Callable[[Canary], Sequence[Probe]],
        make_parts: Callable[[Canary], Parts],
        boundary: Boundary,
    ) -> None:
        self.config = config
        self.boundary = boundary
        self._native = native
        self._make_probes = probes
        self._make_parts = make_parts
        self._probes: Sequence[Probe] = ()
        self._parts: Parts | None = None
        self._drain: Drain | None = None
        self._lock = threading.RLock()
        self._inherited: list[Parts | None] = []
        self._facts_stored = False

    # ---- what users see ---------------------------------------------------------------------

    @property
    def session(self) -> Session | None:
        """Facts of this process, once the engine runs."""
        return None if self._parts is None else self._parts.session

    @property
    def is_running(self) -> bool:
        """Whether loops are watched now."""
        return self._parts is not None

    @property
    def backend(self) -> FileBackend | None:
        """The engine in force, once it runs."""
        return None if self._parts is None else self._parts.backend

    @property
    def stalls(self) -> list[Stall]:
        """The last stalls that were reported in this process, oldest first; at most 1,000."""
        return [] if self._parts is None else list(self._parts.pipeline.recent)

    def statistics(self) -> dict[str, int]:
        """Own counters: samples, drops with reasons, overhead. Empty until a loop runs."""
        parts = self._parts
        if parts is None:
            return {}
        return {**parts.backend.statistics(), **parts.pipeline.counts, **self.boundary.counts()}

    def loops(self) -> tuple[LoopHealth, ...]:
        """Figures of every watched thread up to now."""
        parts = self._parts
        if parts is None:
            return ()
        now_ns = time.monotonic_ns()
        return tuple(parts.health(totals, now_ns) for totals in parts.backend.totals())

    # ---- life -------------------------------------------------------------------------------

    def arm(self) -> None:
        """Patches the loop kinds; the engine starts when the first loop runs."""
        with self._lock:
            if self._native is not None:
                self._native.on_first_lane(self.start)
            if not self._probes:
                self._probes = self._make_probes(self)
            for probe in self._probes:
                self.boundary.call(f"probe {probe.kind}", probe.install)

    def start(self) -> None:
        """Starts the engine, if it does not run. Raises nothing: a failure is logged and counted."""
        with self._lock:
            if self._parts is None:
                self.boundary.call("engine", self._start)

    def _start(self) -> None:
        parts = self._make_parts(self)
        parts.backend.start()
        self._parts = parts
        self._facts_stored = False
        native = self._native if self._native is not None and self._native.is_running() else None
        self._drain = Drain(parts.backend, self._take, self.boundary, first=parts.recover, native=native)
        self._drain.start()
        if native is not None:
            gc.callbacks.append(native.gc_stamp)
        scopes.connect(parts.backend.listener)
        parts.backend.set_facts(parts.facts())
        _stop_before_multiprocessing_exits(self.stop)

    def loop_seen(self) -> None:
        """A loop begins to run: by now `__main__` and sys.path are what they are going to be, and the
        facts beside the evidence are made final. The loop's thread; cheap but for the first time."""
        parts = self._parts
        if parts is not None and not self._facts_stored:
            self._facts_stored = True
            self.boundary.call("facts", lambda: parts.backend.set_facts(parts.facts()), keep=True)

    def portable_loop_runs(self, loop: Any) -> None:
        """A loop is about to run, and only the portable engine is there to watch it. The loop's thread."""
        self.start()
        if self._parts is not None:
            self.boundary.call(
                "portable probe", self._parts.backend.loop_started, loop, threading.get_ident(), keep=True
            )
            self.loop_seen()

    def portable_loop_stopped(self, loop: Any) -> None:
        """The loop runs no more. Its thread."""
        if self._parts is not None:
            self.boundary.call("portable probe", self._parts.backend.loop_stopped, loop, keep=True)

    def _take(self) -> None:
        parts = self._parts
        if parts is not None:
            for evidence in parts.backend.take():
                parts.pipeline.take(evidence)

    def stop(self) -> None:
        """Takes back every patch, ends the threads, stores what is left, removes the flight file. Raises
        nothing. Idempotent."""
        with self._lock:
            if self._native is not None:
                self._native.on_first_lane(None)
            for probe in self._probes:
                self.boundary.call(f"probe {probe.kind}", probe.uninstall, keep=True)
            self._probes = ()
            if self._parts is not None:
                self._finish(self._parts)
                self._parts = None

    def _finish(self, parts: Parts) -> None:
        scopes.connect(None)
        if self._native is not None and self._native.gc_stamp in gc.callbacks:
            gc.callbacks.remove(self._native.gc_stamp)
        drained = self._drain is None or self._drain.stop()
        self.boundary.call("engine", parts.backend.stop, keep=True)
        if drained:
            self.boundary.call("drain", self._take, keep=True)
        session = self._final_session(parts)
        if session.loops or parts.pipeline.counts or self._is_the_program(session):
            self.boundary.call("store", parts.sink.put_session, session, keep=True)
        for reporter in parts.reporters:
            closing = list(parts.pipeline.recent)
            self.boundary.call(f"reporter {reporter.name}", reporter.close, session, closing)
        self.boundary.call("store", parts.sink.close, keep=True)
        self.boundary.call("engine", parts.backend.discard if drained else parts.backend.let_go, keep=True)

    def _final_session(self, parts: Parts) -> Session:
        now_ns = time.monotonic_ns()
        return replace(
            parts.session,
            ended_wall_ns=parts.clock.to_wall_ns(now_ns),
            end=SessionEnd.EXIT,
            loops=self.loops(),
            statistics=self.statistics(),
        )

    def _is_the_program(self, session: Session) -> bool:
        """Whether this process is what a person started with `loopcanary run`."""
        return os.environ.get("LOOPCANARY_RUN_PID") == str(session.pid)

    def after_fork_in_child(self) -> None:
        """The parent's engine is let go of; the child arms its own. The forked thread."""
        parts, self._parts, self._drain = self._parts, None, None
        # Not closed: SQLite forbids a child to use, or close, what its parent has opened.
        self._inherited.append(parts)
        # The parent's other threads are gone, and with them whoever held the lock.
        self._lock = threading.RLock()
        self.boundary.call("engine", self._let_go, parts, keep=True)
        if self._probes and self.config.follow_children:
            self.boundary.call("engine", self.arm, keep=True)

    def _let_go(self, parts: Parts | None) -> None:
        scopes.connect(None)
        if self._native is not None:
            self._native.forget_after_fork()
            while self._native.gc_stamp in gc.callbacks:
                gc.callbacks.remove(self._native.gc_stamp)
        if parts is not None:
            parts.backend.let_go()


def _stop_before_multiprocessing_exits(stop: Callable[[], None]) -> None:
    """A forked worker of multiprocessing ends by os._exit, which runs its finalizers but no atexit."""
    process = sys.modules.get("multiprocessing.process")
    util = sys.modules.get("multiprocessing.util")
    if process is not None and util is not None and process.parent_process() is not None:
        util.Finalize(None, stop, exitpriority=-100)
