"""The canary: one engine in one process, from arming to the end.

    armed      the loop kinds are patched; nothing else is done until a loop runs
    running    flight file, watchdog, drain
    stopped    everything is given back

All methods are called under the GIL, on any thread; `arm`, `start` and `stop` exclude each other.
"""

from __future__ import annotations

import _thread
import os
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from loopcanary.engine import scopes
from loopcanary.engine.boundary import Boundary
from loopcanary.engine.descriptors import LEAST, allowed_descriptors
from loopcanary.engine.fork_pause import FORK_PATIENCE_S, ForkPause
from loopcanary.engine.traced import EngineTraces

if TYPE_CHECKING:  # not loaded before a loop runs
    from loopcanary._native import Native
    from loopcanary.engine.parts import EngineParts, FileBackend
    from loopcanary.engine.running import RunningEngine
    from loopcanary.model import Config, LoopHealth, Session, Stall
    from loopcanary.protocols.loops import Probe


_START_PATIENCE_S = 5.0


class Canary:
    """The engine of this process. Made by `assembly`; `loopcanary.install` gives it out."""

    def __init__(
        self,
        config: Config,
        *,
        native: Native | None,
        make_probes: Callable[[Canary, Native | None], Sequence[Probe]],
        make_parts: Callable[[Canary, Native | None], EngineParts],
        boundary: Boundary,
    ) -> None:
        """`native`: the extension, None for the portable engine; the callables are told which one it is."""
        self.config = config
        self.boundary = boundary
        self.tracing = EngineTraces(boundary)
        self._native = native
        self._make_probes = make_probes
        self._make_parts = make_parts
        self._probes: Sequence[Probe] = ()
        self._engine: RunningEngine | None = None
        self._pid = os.getpid()
        self._lock = _thread.RLock()
        self._inherited: list[RunningEngine | None] = []
        self._has_failed = False
        self._is_starting = False
        self._is_over = False
        self._forks: dict[int, ForkPause | None] = {}
        """Forks in the making, by thread; None: without a rest, as the engine was starting or ending."""

    # ---- what users see ---------------------------------------------------------------------

    @property
    def session(self) -> Session | None:
        """Facts of this process, once the engine runs."""
        engine = self._engine
        return None if engine is None else engine.parts.session

    @property
    def is_running(self) -> bool:
        """Whether loops are watched now."""
        return self._engine is not None

    @property
    def backend(self) -> FileBackend | None:
        """The engine in force, once it runs."""
        engine = self._engine
        return None if engine is None else engine.parts.backend

    @property
    def stalls(self) -> list[Stall]:
        """The last stalls that were reported in this process, oldest first; at most 1,000, and fewer where
        their stacks are many."""
        engine = self._engine
        return [] if engine is None else list(engine.parts.pipeline.recent)

    def statistics(self) -> dict[str, Any]:
        """Own counters: samples, drops with reasons, overhead; and under `loops` the figures of each watched
        thread, as reports have them. Empty until a loop runs."""
        engine = self._engine
        return {} if engine is None else engine.statistics()

    def loops(self) -> tuple[LoopHealth, ...]:
        """Figures of every watched thread up to now."""
        engine = self._engine
        return () if engine is None else engine.loops()

    def probe_notes(self) -> dict[str, list[str]]:
        """What the probes say of themselves, by kind: what they have patched, what they cannot see here."""
        told = {}
        for probe in self._probes:
            notes = getattr(probe, "notes", None)
            said = None if notes is None else self.boundary.call(f"notes of {probe.kind}", notes, keep=True)
            if said:
                told[probe.kind] = list(said)
        return told

    # ---- life -------------------------------------------------------------------------------

    def arm(self) -> None:
        """Patches the loop kinds; the engine starts when the first loop runs."""
        if (allowed := allowed_descriptors()) < LEAST:
            self.boundary.tell(
                f"nothing is watched: {allowed} descriptors are allowed (ulimit -n), and the program may need"
                f" them all; from {LEAST} on it is watched"
            )
            return
        with self._lock:
            if self._native is not None:
                reason = self.boundary.call("native engine", self._native.obstacle, keep=True)
                if reason is not None:
                    self._fall_back(reason)
            self._patch_loops()

    def _patch_loops(self) -> None:
        if self._native is not None:
            self._native.on_first_lane(self.start)
        if not self._probes:
            self._probes = self._make_probes(self, self._native)
        for probe in self._probes:
            self.boundary.call(f"probe {probe.kind}", probe.install)
        scopes.connect_at_work(self.start)

    def start(self) -> None:
        """Starts the engine, if it does not run. Raises nothing: a failure is logged once and counted."""
        with self._lock:
            if self._engine is not None or self._has_failed or self._is_over:
                return
            self._has_failed = self._is_starting = True
            try:
                self.boundary.call("engine", self._start, keep=True)
            finally:
                self._is_starting = False
            self._has_failed = self._engine is None

    def _start(self) -> None:
        from loopcanary.engine.running import RunningEngine

        parts = self._make_parts(self, self._native)
        try:
            parts.backend.start()
        except (OSError, RuntimeError) as error:
            if self._native is None:
                raise
            self._fall_back(str(error))
            self._patch_loops()
            parts = self._make_parts(self, self._native)
            parts.backend.start()
        engine = RunningEngine(parts, native=self._native, boundary=self.boundary, traced=self.tracing)
        self._engine = engine
        try:
            engine.start_drain()
        except BaseException:
            self._engine = None
            raise
        engine.begin(self.stop)

    def _fall_back(self, reason: str) -> None:
        """The native engine cannot run in this process: the portable one takes its place."""
        if self._native is not None:
            self._native.on_first_lane(None)
        self._unpatch_loops()
        self._native = None
        self.boundary.failed("native engine", RuntimeError(f"{reason}; the portable one is used"))

    def loop_seen(self) -> None:
        """A loop begins to run: `__main__` and sys.path are final by now, and so are the facts beside the
        evidence. The loop's thread; cheap but for the first time."""
        engine = self._engine  # another thread may end it meanwhile
        if engine is not None:
            engine.loop_seen()

    def stop(self) -> None:
        """Takes back every patch, ends the threads, stores what is left, removes the flight file. Raises
        nothing. Idempotent."""
        self._notice_fork()
        with self._lock:
            # A thread may be on its way to `start`, called by the hook that it took before we took it back.
            self._is_over = True
            if self._native is not None:
                self._native.on_first_lane(None)
            self._unpatch_loops()
            scopes.connect(None)
            if self._engine is not None:
                self._engine.finish()
            self._engine = None

    def _unpatch_loops(self) -> None:
        for probe in self._probes:
            self.boundary.call(f"probe {probe.kind}", probe.uninstall, keep=True)
        self._probes = ()

    # ---- forks (process_hooks.Follower) -----------------------------------------------------

    def before_fork(self) -> None:
        """Our threads finish their piece of work and end: the child inherits no lock of ours in use, and a
        program of one thread stays one (docs/decisions/0004-fork.md). The forking thread."""
        self._notice_fork()
        # A start is short, and imports: a child of its middle would find modules locked by a thread that it
        # does not have.
        patience_s = _START_PATIENCE_S if self._is_starting else FORK_PATIENCE_S
        if not self._lock.acquire(timeout=patience_s):
            self._forks[threading.get_ident()] = None
            return
        engine = self._engine
        if engine is None:
            self._lock.release()
            return
        pause = ForkPause(engine.parts.backend, engine.drain, engine.parts.sink)
        self._forks[threading.get_ident()] = pause
        self.boundary.call("fork", pause.begin, keep=True)

    def after_fork_in_parent(self) -> None:
        """Our threads start again. The forking thread."""
        pause = self._forks.pop(threading.get_ident(), None)
        if pause is None:
            return
        self.boundary.call("fork", pause.end, keep=True)
        self._lock.release()

    def after_fork_in_child(self) -> None:
        """The parent's engine is let go of; the child arms its own. The forked thread."""
        is_whole = self._is_whole(self._engine)
        self._leave_to_parent()
        if not self._probes:
            return
        if not is_whole:
            self.boundary.tell("this child process is not watched: the engine was at work when it was forked")
        elif self.config.follow_children:
            self.boundary.call("engine", self.arm, keep=True)
            return
        self.stop()

    def _notice_fork(self) -> None:
        """A child that C code forked was told by no hook of Python's: it is not watched, and waits for no
        thread of the parent's."""
        if os.getpid() != self._pid:
            self._leave_to_parent()

    def _leave_to_parent(self) -> None:
        engine, self._engine = self._engine, None
        self._pid = os.getpid()
        # Not closed: SQLite forbids a child to use, or close, what its parent has opened.
        self._inherited.append(engine)
        # The parent's other threads are gone, and with them any that held a lock.
        self._lock = _thread.RLock()
        self._has_failed = self._is_starting = False
        self.boundary.renew_after_fork()
        self.boundary.call("engine", self._let_go, engine, keep=True)

    def _is_whole(self, engine: RunningEngine | None) -> bool:
        """Whether this child inherited nothing that SQLite has open, and no import in the making."""
        pause = self._forks.pop(threading.get_ident(), None)
        self._forks.clear()
        return engine is None and not self._is_starting if pause is None else pause.sink_rests

    def _let_go(self, engine: RunningEngine | None) -> None:
        scopes.connect(None)
        self.tracing.forget()
        if self._native is not None:
            self._native.forget_after_fork()
        if engine is not None:
            engine.let_go()
