"""The canary: one engine in one process, from arming to the end.

    armed      the loop kinds are patched; nothing else is done until a loop runs
    running    flight file and watchdog; a keeper judges, or a drain of this process
    stopped    everything is given back

While it runs, judging changes hands once at most, from the keeper to the program (`take_over`).

All methods are called under the GIL, on any thread; `arm`, `start` and `stop` exclude each other.
"""

from __future__ import annotations

import _thread
import os
import sys

from loopcanary.engine import Boundary, no_room, say_what_is_missing
from loopcanary.engine.attachment import FORK_PATIENCE_S, connect, connect_at_work, tell_exit
from loopcanary.engine.kept import KeptEngine, absolutely
from loopcanary.engine.recorder import note_start
from loopcanary.engine.traced import EngineTraces
from loopcanary.facts import is_short_of_descriptors
from loopcanary.whose_exception import ours_of

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from loopcanary._native import Native
    from loopcanary.engine.calls import EngineCalls
    from loopcanary.engine.fork_pause import ForkPause
    from loopcanary.engine.running import RunningEngine
    from loopcanary.model import Config, LoopHealth, Session, Stall
    from loopcanary.protocols.loops import Probe

    Engine = KeptEngine | RunningEngine

_START_PATIENCE_S = 5.0
_STOP_PATIENCE_S = 10.0


class Canary:
    """The engine of this process. Made by `assembly`; `loopcanary.install` gives it out."""

    def __init__(
        self,
        config: Config,
        *,
        native: Native | None,
        make_probes: Callable[[Canary, Native | None], Sequence[Probe]],
        make_engine: Callable[[Canary, Native | None], Engine],
        boundary: Boundary,
    ) -> None:
        """`native`: the extension, None for the portable engine; the callables get it."""
        self.config = config
        self.boundary = boundary
        self.tracing = EngineTraces(boundary)
        self.calls: EngineCalls | None = None
        """None: no methods are traced."""
        self.run_errand: Callable[[], object] | None = None
        """What is done when a command has an errand here; on a thread of ours."""
        self.begun_ns = 0
        """When loopcanary's first line ran in this process, monotonic; 0: in the middle of the program."""
        self._native = native
        self._make_probes = make_probes
        self._make_engine = make_engine
        self._loading: list[int] = []
        """Threads in `load`, once for each call."""
        self._probes: Sequence[Probe] = ()
        self._engine: Engine | None = None
        self.kept: KeptEngine | None = None
        """The engine in force, where a keeper judges."""
        self.no_keeper: str | None = None
        """Why this process judges its stalls itself, or is to."""
        self._pid = os.getpid()
        self._lock = _thread.RLock()
        self._inherited: list[Engine | None] = []
        self._room: bool | None = None
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
        return None if engine is None else engine.session

    @property
    def is_running(self) -> bool:
        """Whether loops are watched now."""
        return self._engine is not None

    @property
    def backend(self) -> Any:
        """The engine in force, once it runs."""
        engine = self._engine
        return None if engine is None else engine.backend

    @property
    def stalls(self) -> list[Stall]:
        """The last stalls that were reported in this process, oldest first; at most 1,000, and fewer where
        their stacks are many."""
        engine = self._engine
        return [] if engine is None else engine.stalls()

    def statistics(self) -> dict[str, Any]:
        """Own counters: samples, drops with reasons, overhead; and under `loops` the figures of each watched
        thread, as reports have them. Empty until a loop runs."""
        engine = self._engine
        return (
            {}
            if engine is None
            else {**engine.statistics(), **({} if self.calls is None else self.calls.counts())}
        )

    def loops(self) -> tuple[LoopHealth, ...]:
        """Figures of every watched thread up to now."""
        engine = self._engine
        return () if engine is None else engine.loops()

    def probe_notes(self) -> dict[str, list[str]]:
        """What the probes say of themselves, by kind: what they have patched, what they cannot see here."""
        told = {}
        for probe in self._probes:
            notes = getattr(probe, "notes", None)
            with self.boundary(f"notes of {probe.kind}"):
                if notes is not None and (said := notes()):
                    told[probe.kind] = list(said)
        return told

    # ---- life -------------------------------------------------------------------------------

    def arm(self) -> None:
        """Patches the loop kinds; the engine starts when the first loop runs."""
        with self._lock:
            if not self._has_room():
                return
            if self._native is not None:
                reason = None
                with self.boundary("native engine"):
                    reason = self._native.obstacle()
                if reason is not None:
                    self._fall_back(reason)
            self._patch_loops()

    def _patch_loops(self) -> None:
        if self._native is not None:
            self._native.on_first_lane(self.start)
        if not self._probes:
            self._probes = self._make_probes(self, self._native)
        for probe in self._probes:
            with self.boundary.until_failure(f"probe {probe.kind}") as is_on:
                if is_on:
                    probe.install()
        connect_at_work(self.start)

    def start(self) -> None:
        """Starts the engine, if it does not run. Raises nothing: a failure is logged once and counted."""
        with self._lock:
            if self._engine is not None or self._has_failed or self._is_over or not self._has_room():
                return
            self._has_failed = self._is_starting = True
            try:
                with self.boundary("engine"):
                    self._start()
            finally:
                self._is_starting = False
            self._has_failed = self._engine is None

    def settle(self) -> None:
        """Waits until the engine, where it judges in this process, has loaded what it judges with."""
        engine = self._engine
        if engine is not None and not isinstance(engine, KeptEngine):
            engine.settle()

    def _has_room(self) -> bool:
        """Asked once, before anything is made. Under the lock."""
        if self._room is None:
            reason = no_room()
            self._room = reason is None
            if reason is not None:
                self.boundary.tell(f"nothing is watched: {reason}")
        return self._room

    def _start(self) -> None:
        engine = self._started()
        self._begin(engine)
        if self.calls is not None:
            self.calls.start(engine.backend)
        if self._native is not None:
            self._native.on_errand(self._run_errand)
        if self._native is not None and not self._inherited:
            with self.boundary.until_failure("startup") as is_on:
                if is_on:
                    note_start(
                        self._native, getattr(engine.backend, "file", None), self.config, self.begun_ns
                    )

    def _run_errand(self) -> None:
        self.load(self._run_errand_now)

    def _run_errand_now(self) -> None:
        with self.boundary("errand"):
            if self.run_errand is not None:
                self.run_errand()

    def _started(self) -> Engine:
        """The best engine that can be started here: with a keeper, native, portable. Raises what the last one
        does."""
        engine = self._make_engine(self, self._native)
        try:
            engine.start()
        except ours_of(OSError, RuntimeError) as error:
            if isinstance(engine, KeptEngine):
                self.no_keeper = str(error)
            elif self._native is None:
                raise
            else:
                self._fall_back(str(error))
                self._patch_loops()
            return self._started()
        return engine

    def _begin(self, engine: Engine, before: KeptEngine | None = None) -> None:
        """`before`: the engine in force, which goes on if `engine` cannot begin."""
        in_force, self._engine = self._engine, engine
        self.kept = engine if isinstance(engine, KeptEngine) else None
        try:
            engine.begin(self.stop, _nothing if before is None else before.hand_over)
        except BaseException:
            self._engine, self.kept = in_force, before
            if before is None:
                engine.give_up()
            raise

    def take_over(self, reason: str) -> None:
        """The program judges from now on, for that reason: the drain of another engine, on the same flight
        file. Any thread; raises nothing."""
        self._take_over_within(_START_PATIENCE_S, reason)

    def keeper_refused(self, reason: str) -> None:
        """As take_over, on a thread of ours: a fork that is being made waits for its end."""
        self._take_over_within(FORK_PATIENCE_S / 2, reason)

    def _take_over_within(self, patience_s: float, reason: str) -> None:
        kept = self.kept
        if kept is None:  # not asked under the lock: the drain comes here while `stop` waits for its end
            return
        self.no_keeper = self.no_keeper or reason
        if self._lock.acquire(timeout=patience_s):
            try:
                # A descriptor that the program closes, it expects to get again.
                if self.kept is kept and (self._is_over or not is_short_of_descriptors()):
                    with self.boundary("judging"):
                        absolutely(lambda: self._take_over(kept))
            finally:
                self._lock.release()
        if self.kept is kept:
            kept.leave_to_keeper()  # the courier calls again, if anything waits; so do forks and the end

    def _take_over(self, kept: KeptEngine) -> None:
        self._is_starting = True
        try:
            engine = self._make_engine(self, self._native)
            engine.start()
            self._begin(engine, kept)
        finally:
            self._is_starting = False

    def load(self, make: Callable[[], Any]) -> Any:
        """What `make` gives, and raises. It imports: a fork waits for its end, and it for the end of a fork,
        so that a child finds no module half made."""
        is_held = self._lock.acquire(timeout=_START_PATIENCE_S)
        try:
            self._loading.append(_thread.get_ident())
        finally:
            if is_held:
                self._lock.release()
        return self._load_in_turn(make)

    def load_on_drain(self, make: Callable[[], Any]) -> Any:
        """As load; forks bring the drain to rest, and `stop` waits for it under the lock."""
        self._loading.append(_thread.get_ident())
        return self._load_in_turn(make)

    def _load_in_turn(self, make: Callable[[], Any]) -> Any:
        """One thread of ours imports at a time: where one imports a package and another a module in it,
        Python gives one of them a module half made. No lock is held meanwhile, and none waits for long: the
        program may be in the middle of an import that the other one has to wait for."""
        me, loading = _thread.get_ident(), self._loading

        def in_turn() -> Any:
            from loopcanary.engine.fork_pause import wait_for_calm, wait_while

            if loading.count(me) == 1:
                wait_while(lambda: loading[0] != me)
                wait_for_calm(lambda: self._is_over)
            return make()

        try:
            return absolutely(in_turn)
        finally:
            loading.remove(me)

    def _loads_elsewhere(self) -> bool:
        return any(one != _thread.get_ident() for one in self._loading)

    def _wait_while(self, is_loading: Callable[[], bool]) -> None:
        from loopcanary.engine.fork_pause import wait_while

        wait_while(is_loading)

    def _fall_back(self, reason: str) -> None:
        """The native engine cannot run in this process: the portable one takes its place."""
        if self._native is not None:
            self._native.on_first_lane(None)
        self._unpatch_loops()
        self._native = None
        self.boundary.failed("native engine", RuntimeError(f"{reason}; the portable one is used"))
        say_what_is_missing(self.config, self.boundary)

    def loop_seen(self) -> None:
        """A loop begins to run: `__main__` and sys.path are final by now, and so are the facts beside the
        evidence. The loop's thread; cheap but for the first time."""
        engine = self._engine  # another thread may end it meanwhile
        if engine is not None:
            engine.loop_seen()
        if self._native is not None:
            tell_exit(self._native)

    def stop(self) -> None:
        """Takes back every patch, ends the threads, stores what is left, removes the flight file. Raises
        nothing. Idempotent."""
        self._notice_fork()
        # Another thread may be in the middle of this, in an interceptor of the program's that does not end.
        if not self._lock.acquire(timeout=_STOP_PATIENCE_S):
            return
        try:
            self._stop()
        finally:
            self._lock.release()

    def _stop(self) -> None:
        # A thread may be on its way to `start`, called by the hook that it took before we took it back.
        self._is_over = True
        if self._native is not None:
            self._native.on_first_lane(None)
        self._unpatch_loops()
        connect(None)
        if self.calls is not None:
            self.calls.stop()
        if self._native is not None:
            self._native.on_errand(None)
            self._native.start_over()
        if self.no_keeper is not None:
            self.take_over(self.no_keeper)
        if self._engine is not None:
            self._engine.finish()
        self._engine = self.kept = None

    def _unpatch_loops(self) -> None:
        for probe in self._probes:
            with self.boundary(f"probe {probe.kind}") as is_on:
                if is_on:
                    probe.uninstall()
        self._probes = ()

    # ---- forks (attachment.ForkListener) -----------------------------------------------------

    def before_fork(self) -> None:
        """Our threads finish their piece of work and end: the child inherits no lock of ours in use, and a
        program of one thread stays one (docs/decisions/0004-fork.md). The forking thread."""
        self._notice_fork()
        self._wait_for_loads()
        # A start is short, and imports: a child of its middle would find modules locked by a thread that it
        # does not have.
        patience_s = _START_PATIENCE_S if self._is_starting else FORK_PATIENCE_S
        if not self._lock.acquire(timeout=patience_s):
            self._forks[_thread.get_ident()] = None
            return
        self._wait_for_loads()  # one may have begun meanwhile; the next waits for the lock
        engine = self._engine
        if engine is None:
            self._lock.release()
            return
        pause = None
        with self.boundary("fork"):
            pause = engine.fork_pause()
        self._forks[_thread.get_ident()] = pause
        if pause is None:
            self._lock.release()
        else:
            with self.boundary("fork"):
                pause.begin()

    def _wait_for_loads(self) -> None:
        if self._loads_elsewhere():
            with self.boundary("fork"):
                self._wait_while(self._loads_elsewhere)

    def after_fork_in_parent(self) -> None:
        """Our threads start again. The forking thread."""
        pause = self._forks.pop(_thread.get_ident(), None)
        if pause is not None:
            with self.boundary("fork"):
                pause.end()
            self._lock.release()
        if self.no_keeper is not None and self.kept is not None:  # this fork was in the way
            self.take_over(self.no_keeper)

    def after_fork_in_child(self) -> None:
        """The parent's engine is let go of; the child arms its own. The forked thread."""
        is_whole = self._is_whole(self._engine) and not self._loads_elsewhere()
        self._leave_to_parent()
        if not self._probes:
            return
        if not is_whole:
            self.boundary.tell("this child process is not watched: the engine was working when it was forked")
        elif self.config.follow_children:
            with self.boundary("engine"):
                self.arm()
            return
        self.stop()

    def _notice_fork(self) -> None:
        """A child that C code forked ran no fork hook of Python: it is not watched, and waits for no
        thread of the parent's."""
        if os.getpid() != self._pid:
            self._leave_to_parent()

    def _leave_to_parent(self) -> None:
        engine, self._engine, self.kept = self._engine, None, None
        self._pid = os.getpid()
        # Not closed: SQLite forbids a child to use, or close, what its parent has opened.
        self._inherited.append(engine)
        # The parent's other threads are gone, and with them any that held a lock.
        self._lock = _thread.RLock()
        self._has_failed = self._is_starting = False
        self._loading = []
        if (import_path := sys.modules.get("loopcanary.engine.import_path")) is not None:
            import_path.forget_threads()
        self.boundary.renew_after_fork()
        with self.boundary("engine"):
            self._let_go(engine)

    def _is_whole(self, engine: Engine | None) -> bool:
        """Whether this child inherited nothing that SQLite has open, and no module half made."""
        pause = self._forks.pop(_thread.get_ident(), None)
        self._forks.clear()
        return engine is None and not self._is_starting if pause is None else pause.is_whole

    def _let_go(self, engine: Engine | None) -> None:
        connect(None)
        self.tracing.forget()
        if self.calls is not None:
            self.calls.stop()
        if self._native is not None:
            self._native.forget_after_fork()
        if engine is not None:
            engine.let_go()


def _nothing() -> None:
    """No engine has to let go."""
