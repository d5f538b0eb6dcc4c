"""The canary: one engine in one process, from arming to the end.

    armed      the loop kinds are patched; nothing else is done until a loop runs
    running    flight file, watchdog, drain
    stopped    everything is given back

All methods are called under the GIL, on any thread; `arm`, `start` and `stop` exclude each other.
"""

from __future__ import annotations

import _thread
import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from loopcanary.engine import scopes
from loopcanary.engine.boundary import Boundary
from loopcanary.engine.drain import Drain
from loopcanary.engine.fork_pause import FORK_PATIENCE_S, ForkPause
from loopcanary.protocols.engine import Backend, ScopeListener
from loopcanary.protocols.loops import Probe
from loopcanary.protocols.plugins import Reporter
from loopcanary.protocols.stores import Sink
from loopcanary.protocols.tracing import Traces

if TYPE_CHECKING:  # not loaded before a loop runs
    from loopcanary._native import Native
    from loopcanary.engine.pipeline import Pipeline
    from loopcanary.model import Clock, Config, LaneTotals, LoopHealth, Session, Stall, TraceFigures


_START_PATIENCE_S = 5.0


class FileBackend(Backend, Protocol):
    """A backend that may keep a flight file."""

    def set_facts(self, facts: dict[str, Any]) -> bool:
        """Stores the session's facts beside the evidence."""

    def rest(self) -> None:
        """Ends its threads; what is open stays open. Before a fork."""

    def go_on(self) -> None:
        """Starts its threads again. OSError or RuntimeError where the system gives none."""

    def discard(self) -> None:
        """Removes the evidence: it has been taken."""

    def let_go(self) -> None:
        """Leaves the evidence to another process."""

    def loop_started(self, loop: Any, thread_ident: int, kind: str | None = None) -> None:
        """The portable engine: a loop is about to run on this thread."""

    def loop_stopped(self, loop: Any) -> None:
        """The portable engine: the loop runs no more."""

    @property
    def listener(self) -> ScopeListener:
        """Hears of scenes and work from `scopes`."""


class Plugged(Protocol):
    """Third parties' tracers. Nothing is raised."""

    def start(self) -> None:
        """The engine runs. The thread that starts it."""

    def stop(self) -> None:
        """It is about to end. The drain's last work."""

    def close(self) -> None:
        """All that they told was taken."""

    def forget(self) -> None:
        """In a forked child: they are the parent's."""

    def counts(self) -> dict[str, int]:
        """What became of what they told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineParts:
    """What a running canary is made of; `assembly` makes it."""

    session: Session
    clock: Clock
    backend: FileBackend
    pipeline: Pipeline
    sink: Sink
    reporters: Sequence[Reporter]
    health: Callable[[Sequence[LaneTotals], int], tuple[LoopHealth, ...]]
    facts: Callable[[], dict[str, Any]]
    plugged: Plugged
    recover: Callable[[], object]
    """Takes in what earlier processes left with this store; called once, on the drain thread."""


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
        self.traces: Traces | None = None
        """Of frames, input and idle work, if a probe reports them."""
        self.before_figures: Callable[[], object] = _nothing
        """Called before the traces are asked for what they know: the moment to make them."""
        self._native = native
        self._make_probes = make_probes
        self._make_parts = make_parts
        self._probes: Sequence[Probe] = ()
        self._parts: EngineParts | None = None
        self._drain: Drain | None = None
        self._lock = _thread.RLock()
        self._inherited: list[EngineParts | None] = []
        self._facts_stored = False
        self._has_failed = False
        self._is_starting = False
        self._leaves_evidence = False
        self._is_over = False
        self._before_workers_exit: Any = None
        self._forks: dict[int, ForkPause | None] = {}
        """Forks in the making, by thread; None: without a rest, as the engine was starting or ending."""

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
        """The last stalls that were reported in this process, oldest first; at most 1,000, and fewer where
        their stacks are many."""
        return [] if self._parts is None else list(self._parts.pipeline.recent)

    def statistics(self) -> dict[str, Any]:
        """Own counters: samples, drops with reasons, overhead; and under `loops` the figures of each watched
        thread, as reports have them. Empty until a loop runs."""
        parts = self._parts
        if parts is None:
            return {}
        counts = self.boundary.call("statistics", self._statistics, parts, keep=True) or {}
        traced = self.boundary.call("tracers", self._traces_as_told, keep=True) or {}
        loops = self.boundary.call("totals", self._loops_as_told, parts, keep=True) or []
        return {**counts, "loops": loops, **traced}

    def _traces_as_told(self) -> dict[str, Any]:
        from loopcanary.wire import to_wire

        self.before_figures()
        return {} if self.traces is None else to_wire(self.traces.figures())

    def _loops_as_told(self, parts: EngineParts) -> list[dict[str, Any]]:
        from loopcanary.wire import to_wire

        return [to_wire(loop) for loop in self._loops(parts)]

    def _statistics(self, parts: EngineParts) -> dict[str, int]:
        return {
            **parts.backend.statistics(),
            **parts.pipeline.counts,
            **parts.pipeline.issue_counts,
            **self._reporters_counts(parts),
            **parts.plugged.counts(),
            **self.boundary.counts(),
        }

    def _reporters_counts(self, parts: EngineParts) -> dict[str, int]:
        """What those reporters did and dropped that count it."""
        told: dict[str, int] = {}
        for reporter in parts.reporters:
            counts = getattr(reporter, "counts", None)
            if counts is not None:
                told |= self.boundary.call(f"counts of {reporter.name}", counts, keep=True) or {}
        return told

    def loops(self) -> tuple[LoopHealth, ...]:
        """Figures of every watched thread up to now."""
        parts = self._parts
        return () if parts is None else self.boundary.call("totals", self._loops, parts, keep=True) or ()

    def _loops(self, parts: EngineParts) -> tuple[LoopHealth, ...]:
        now_ns = time.monotonic_ns()
        return parts.health(parts.backend.totals(), now_ns)

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

    def trace_with(self, traces: Traces) -> None:
        """Adds the traces of frames, input and idle work, for the first probe that reports these. Any
        thread."""
        self.traces = traces
        parts = self._parts
        if parts is not None:
            self._begin_traces(parts)

    def _begin_traces(self, parts: EngineParts) -> None:
        if self.traces is not None:
            begin = self.traces.begin
            self.boundary.call("tracers", begin, parts.session, parts.clock, parts.backend.wake, keep=True)

    def arm(self) -> None:
        """Patches the loop kinds; the engine starts when the first loop runs."""
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
            if self._parts is not None or self._has_failed or self._is_over:
                return
            self._has_failed = self._is_starting = True
            try:
                self.boundary.call("engine", self._start, keep=True)
            finally:
                self._is_starting = False
            self._has_failed = self._parts is None

    def _start(self) -> None:
        parts = self._make_parts(self, self._native)
        try:
            parts.backend.start()
        except RuntimeError as error:
            if self._native is None:
                raise
            self._fall_back(str(error))
            self._patch_loops()
            parts = self._make_parts(self, self._native)
            parts.backend.start()
        take = partial(self._take, parts)
        drain = Drain(
            parts.backend,
            take,
            self.boundary,
            first=parts.recover,
            native=self._native,
            patience_s=self._patience_s,
        )
        self._parts = parts
        try:
            drain.start()
        except BaseException:
            self._parts = None
            parts.backend.stop()
            parts.backend.discard()
            raise
        self._drain = drain
        self._facts_stored = False
        if self._native is not None:
            gc.callbacks.append(self._native.gc_stamp)
            # False where asyncio is not imported yet: then its probe does this when it patches it.
            self._native.learn_asyncio()
        scopes.connect(parts.backend.listener)
        parts.backend.set_facts(parts.facts())
        self._begin_traces(parts)
        parts.plugged.start()
        self._before_workers_exit = _before_multiprocessing_exits(self.stop)

    def _fall_back(self, reason: str) -> None:
        """The native engine cannot run in this process: the portable one takes its place."""
        if self._native is not None:
            self._native.on_first_lane(None)
        self._unpatch_loops()
        self._native = None
        self.boundary.failed("native engine", RuntimeError(f"{reason}; the portable one is used"))

    def loop_seen(self) -> None:
        """A loop begins to run: by now `__main__` and sys.path are what they are going to be, and the
        facts beside the evidence are made final. The loop's thread; cheap but for the first time."""
        parts = self._parts
        if parts is not None and not self._facts_stored:
            self._facts_stored = True
            self.boundary.call("facts", lambda: parts.backend.set_facts(parts.facts()), keep=True)

    def portable_loop_runs(self, loop: Any, kind: str | None = None) -> None:
        """A loop is about to run, and only the portable engine is there to watch it. The loop's thread.
        `kind`: as Backend's; None: it is found out."""
        self.start()
        if self._parts is not None:
            started, ident = self._parts.backend.loop_started, threading.get_ident()
            self.boundary.call("portable probe", started, loop, ident, kind, keep=True)
            self.loop_seen()

    def portable_loop_stopped(self, loop: Any) -> None:
        """The loop runs no more. Its thread."""
        if self._parts is not None:
            self.boundary.call("portable probe", self._parts.backend.loop_stopped, loop, keep=True)

    def _take(self, parts: EngineParts) -> bool:
        """True: nothing went wrong that would be known here only."""
        taken = parts.backend.take()
        for evidence in taken:
            # Not before it is stored: a kill in between would lose it.
            if parts.pipeline.take(evidence):
                parts.backend.release(evidence)
            else:
                self._leaves_evidence = True
        told = self._take_traces(parts, is_last=False)
        if taken or told:
            # What is open can be closed behind our back (a daemon closes all descriptors), or inherited.
            self.boundary.call("store", parts.sink.close, keep=True)
        return True

    def _patience_s(self) -> float | None:
        return None if self.traces is None else self.traces.patience_s(time.monotonic_ns())

    def _take_traces(self, parts: EngineParts, *, is_last: bool) -> bool:
        """Issues of the traces, and their figures; whether there was anything. Drain thread."""
        self.before_figures()
        traces = self.traces
        if traces is None:
            return False
        issues = traces.take(time.monotonic_ns(), parts.pipeline.recent, is_last=is_last)
        for issue in issues:
            parts.pipeline.take_issue(issue)
        news = traces.news()
        if news is not None:
            self.boundary.call("store", parts.sink.put_traces, parts.session.id, news, keep=True)
        return bool(issues) or news is not None

    def stop(self) -> None:
        """Takes back every patch, ends the threads, stores what is left, removes the flight file. Raises
        nothing. Idempotent."""
        with self._lock:
            # A thread may be on its way to `start`, called by the hook that it took before we took it back.
            self._is_over = True
            if self._native is not None:
                self._native.on_first_lane(None)
            self._unpatch_loops()
            scopes.connect(None)
            if self._parts is not None and self._drain is not None:
                self._finish(self._parts, self._drain)
            self._parts = self._drain = None

    def _unpatch_loops(self) -> None:
        for probe in self._probes:
            self.boundary.call(f"probe {probe.kind}", probe.uninstall, keep=True)
        self._probes = ()

    def _finish(self, parts: EngineParts, drain: Drain) -> None:
        if self._native is not None and self._native.gc_stamp in gc.callbacks:
            gc.callbacks.remove(self._native.gc_stamp)
        if self._before_workers_exit is not None:
            self._before_workers_exit.cancel()
            self._before_workers_exit = None
        # Interceptors, reporters and disks may take any time: the program does not wait for them for long.
        if not drain.finish(lambda: self._close(parts)):
            self.boundary.failed(
                "drain",
                TimeoutError("it did not end in time; what it has not stored yet is left to the next start"),
                keep=True,
            )
            # The drain goes on for as long as the process does. From here on it finds nothing to take, and
            # would remove what it has not taken.
            self._leaves_evidence = True
            self.boundary.call("engine", parts.backend.stop, keep=True)
            self.boundary.call("engine", parts.backend.let_go, keep=True)

    def _close(self, parts: EngineParts) -> None:
        """The last thing that the drain does."""
        from loopcanary.model import SessionEnd, TraceFigures

        call = self.boundary.call
        parts.plugged.stop()  # here, as it is others' code: the program does not wait for it for long
        call("engine", parts.backend.stop, keep=True)
        is_whole = bool(call("drain", self._take, parts, keep=True))
        traced = call("tracers", self._last_traces, parts, keep=True)
        parts.plugged.close()
        now_ns = time.monotonic_ns()
        session = replace(
            parts.session,
            ended_wall_ns=parts.clock.to_wall_ns(now_ns),
            end=SessionEnd.EXIT,
            loops=call("totals", self._loops, parts, keep=True) or (),
            statistics=call("statistics", self._statistics, parts, keep=True) or {},
            traces=traced or TraceFigures(),
        )
        known = session.loops or parts.pipeline.counts or parts.pipeline.issue_counts
        if known or self._is_the_program(session):
            is_whole &= bool(call("store", _put_session, parts, session, keep=True))
        for reporter in parts.reporters:
            closing = list(parts.pipeline.recent)
            call(f"reporter {reporter.name}", reporter.close, session, closing)
        call("store", parts.sink.close, keep=True)
        # What could not be stored may be taken in by the next start or command.
        is_whole &= not self._leaves_evidence
        call("engine", parts.backend.discard if is_whole else parts.backend.let_go, keep=True)

    def _last_traces(self, parts: EngineParts) -> TraceFigures | None:
        self.before_figures()
        if self.traces is None:
            return None
        self.traces.end()
        self._take_traces(parts, is_last=True)
        return self.traces.close()

    def _is_the_program(self, session: Session) -> bool:
        """Whether this process is what a person started with `loopcanary run`."""
        return os.environ.get("LOOPCANARY_RUN_PID") == str(session.pid)

    # ---- forks (process_hooks.Follower) -----------------------------------------------------

    def before_fork(self) -> None:
        """Our threads put down what they have in hand and end, so that the child inherits no lock of ours
        in use, and a program of one thread is one (docs/decisions/0004-fork.md). The forking thread."""
        # A start is short, and imports: a child of its middle would find modules locked by a thread that it
        # does not have.
        patience_s = _START_PATIENCE_S if self._is_starting else FORK_PATIENCE_S
        if not self._lock.acquire(timeout=patience_s):
            self._forks[threading.get_ident()] = None
            return
        parts, drain = self._parts, self._drain
        if parts is None or drain is None:
            self._lock.release()
            return
        pause = self._forks[threading.get_ident()] = ForkPause(parts.backend, drain, parts.sink)
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
        parts, self._parts, self._drain = self._parts, None, None
        is_whole = self._is_whole(parts)
        # Not closed: SQLite forbids a child to use, or close, what its parent has opened.
        self._inherited.append(parts)
        # The parent's other threads are gone, and with them any that held a lock.
        self._lock = _thread.RLock()
        self._before_workers_exit = None
        self._has_failed = self._is_starting = self._leaves_evidence = False
        self.boundary.renew_after_fork()
        self.boundary.call("engine", self._let_go, parts, keep=True)
        if not self._probes:
            return
        if not is_whole:
            self.boundary.tell("this child process is not watched: the engine was at work when it was forked")
        elif self.config.follow_children:
            self.boundary.call("engine", self.arm, keep=True)
            return
        self.stop()

    def _is_whole(self, parts: EngineParts | None) -> bool:
        """Whether this child inherited nothing that SQLite has open, and no import in the making."""
        pause = self._forks.pop(threading.get_ident(), None)
        self._forks.clear()
        return parts is None and not self._is_starting if pause is None else pause.sink_rests

    def _let_go(self, parts: EngineParts | None) -> None:
        scopes.connect(None)
        if self.traces is not None:
            self.traces.forget()
        if self._native is not None:
            self._native.forget_after_fork()
            while self._native.gc_stamp in gc.callbacks:
                gc.callbacks.remove(self._native.gc_stamp)
        if parts is not None:
            parts.plugged.forget()
            parts.backend.let_go()


def _put_session(parts: EngineParts, session: Session) -> bool:
    parts.sink.put_session(session)
    return True


def _nothing() -> None:
    """The default listener."""


def _before_multiprocessing_exits(stop: Callable[[], None]) -> Any:
    """A forked worker of multiprocessing ends by os._exit, which runs its finalizers but no atexit. None in
    other processes."""
    process = sys.modules.get("multiprocessing.process")
    util = sys.modules.get("multiprocessing.util")
    if process is None or util is None or process.parent_process() is None:
        return None
    return util.Finalize(None, stop, exitpriority=-100)
