"""The engine of a program that judges its stalls itself: from the start of its threads to the last thing that
its drain does. The drain first loads what it judges with; stalls are recorded from the start on."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from loopcanary.engine.attachment import FORK_PATIENCE_S, Attachment, priority_changes
from loopcanary.engine.drain import Drain
from loopcanary.engine.fork_pause import STARTS, ForkPause, import_patience_s, wait_while
from loopcanary.facts import is_short_of_descriptors
from loopcanary.whose_exception import ours_of

if TYPE_CHECKING:
    from loopcanary._native import Native
    from loopcanary.engine import Boundary
    from loopcanary.engine.parts import EngineParts, FileBackend, Plugged
    from loopcanary.engine.traced import EngineTraces
    from loopcanary.model import LagIssue, LoopHealth, Session, Stall, TraceFigures
    from loopcanary.protocols.stores import Sink

_AGAIN_S, _AGAIN_MOST_S = 1.0, 60.0
"""Between tries to load the parts."""
_SHORT_LOOK_S, _SHORT_PATIENCE_S = 0.5, 5.0
"""How often it is asked whether the program has descriptors again, and for how long."""
_NOTIFY_S = 1.0
"""At the end, for notifications that are to be delivered still."""


class RunningEngine:
    """One run of the engine. Methods say on which thread they are called where it is not any."""

    def __init__(
        self,
        backend: FileBackend,
        load: Callable[[], EngineParts],
        *,
        facts: Callable[[], dict[str, Any]],
        plugged: Plugged | None,
        native: Native | None,
        boundary: Boundary,
        traced: EngineTraces,
    ) -> None:
        """`load` gives the parts, on the drain: it imports; `facts`: of the session, on the wire."""
        self.backend = backend
        self.plugged = plugged
        self.parts: EngineParts | None = None
        """None until the drain has loaded them."""
        self.drain = Drain(backend, self._judge, boundary, native=native, patience_s=self._patience_s)
        self._load = load
        self._facts = facts
        self._boundary = boundary
        self._traced = traced
        self._attachment = Attachment(native)
        self._facts_stored = False
        self._leaves_evidence = False
        self._has_start = False
        self._is_loading = True
        """The drain loads the parts, or is about to; False: they are loaded, or that has failed."""
        self._again_s = _AGAIN_S
        self._short_since_s: float | None = None
        self._notify_ns: int | None = None
        """When notifications are due."""
        self._may_be_open = False
        """The store, which the drain closes when it has stored."""

    def settle(self) -> None:
        """Waits for the load: none of it is to happen beside the imports of a program that begins."""
        if self._is_loading:
            wait_while(lambda: self._is_loading, import_patience_s(STARTS))

    def _when_loaded(self) -> EngineParts | None:
        """The parts; None where they cannot be loaded, or not yet: the drain may have to wait for the calling
        thread's import."""
        if self._is_loading and not self.drain.is_here():
            wait_while(lambda: self._is_loading)
        return self.parts

    @property
    def session(self) -> Session | None:
        parts = self._when_loaded()
        return None if parts is None else parts.session

    def stalls(self) -> list[Stall]:
        """The last that were reported, oldest first."""
        parts = self._when_loaded()
        return [] if parts is None else list(parts.pipeline.recent)

    def fork_pause(self) -> ForkPause:
        """A fork is about to be made."""
        if self.parts is not None and self.parts.notifier is not None:
            self.parts.notifier.rest(FORK_PATIENCE_S)
        return ForkPause(self.backend, self.drain, self._sink, is_loading=lambda: self._is_loading)

    def _sink(self) -> Sink | None:
        return None if self.parts is None else self.parts.sink

    def start(self) -> None:
        """Begins to watch. OSError or RuntimeError with the reason why it cannot."""
        self.backend.start()

    def begin(self, stop: Callable[[], None], hand_over: Callable[[], object]) -> None:
        """As KeptEngine.begin; starts the drain, too."""
        self._start_drain()
        hand_over()
        self._attachment.begin(self.backend.listener, stop, self._renew_facts)
        self.backend.set_facts(self._facts())
        self._traced.engine_runs(lambda traces: traces.run(self.backend.wake))
        if self.plugged is not None:
            self.plugged.start()
        self._traced.tells(self._renew_facts)

    def _start_drain(self) -> None:
        """Where the system gives no thread for it, it is tried again with the next loop; at the end what was
        recorded is judged in any case."""
        self._is_loading = True  # before it starts: it may have loaded all when `start` returns
        try:
            self.drain.start()
        except ours_of(OSError, RuntimeError) as error:
            self._is_loading = False
            self._boundary.failed("judging", error, keep=True)

    def give_up(self) -> None:
        """As KeptEngine.give_up."""
        self.backend.stop()
        self.backend.discard()

    def loop_seen(self) -> None:
        """By now `__main__` and sys.path are what they are going to be: the facts are made final, once."""
        if not self._facts_stored:
            self._facts_stored = True
            self._renew_facts()
        if not self.drain.is_started:
            self._start_drain()

    def _renew_facts(self) -> None:
        with self._boundary("facts"):
            self.backend.set_facts(self._facts())

    # ---- figures ----------------------------------------------------------------------------

    def statistics(self) -> dict[str, Any]:
        """As `Canary.statistics`."""
        parts = self._when_loaded()
        told: dict[str, Any] = self._counts(parts)
        if parts is None:
            return told
        told["loops"] = []
        with self._boundary("totals"):
            from loopcanary.wire import to_wire

            told["loops"] = [to_wire(loop) for loop in self.loops()]
        with self._boundary("tracers"):
            told |= self._traced.figures()
        return told

    def loops(self) -> tuple[LoopHealth, ...]:
        """Figures of every watched thread up to now."""
        with self._boundary("totals"):
            parts = self._when_loaded()
            return () if parts is None else parts.health(self.backend.totals(), time.monotonic_ns())
        return ()

    def _counts(self, parts: EngineParts | None) -> dict[str, int]:
        counts: dict[str, int] = {}
        with self._boundary("statistics"):
            counts = {
                **self.backend.statistics(),
                **({} if parts is None else parts.pipeline.statistics()),
                **({} if parts is None or self.plugged is None else self.plugged.counts()),
            }
        return {**counts, **self._boundary.counts()}

    # ---- the drain's work -------------------------------------------------------------------

    def _patience_s(self) -> float | None:
        if self.parts is None:
            return 0.0 if self._is_loading and self._short_since_s is None else self._again_s
        patiences_s = [self._traced.patience_s(), None if self._short_since_s is None else _SHORT_LOOK_S]
        if self._notify_ns is not None:
            patiences_s.append(max(self._notify_ns - time.monotonic_ns(), 0) / 1e9)
        return min((one for one in patiences_s if one is not None), default=None)

    def _judge(self) -> None:
        """Later, where the program has used up its descriptors: what is loaded and stored takes some, which
        the program, as it closes one, expects to get again."""
        if not is_short_of_descriptors():
            self._short_since_s = None
        elif self._short_since_s is None:
            self._short_since_s = time.monotonic()
        if self._short_since_s is None or time.monotonic() - self._short_since_s > _SHORT_PATIENCE_S:
            self._judge_now()

    def _loaded(self) -> EngineParts | None:
        """The parts; those that could not be loaded yet are loaded now. None where that fails: it is tried
        again after 2, 4, 8 ... 60 s, and at the end."""
        if self.parts is None:
            self._again_s = min(2 * self._again_s, _AGAIN_MOST_S)
            self._is_loading = True
            try:
                with self._boundary("judging"):
                    self.parts = self._load()
            finally:
                self._is_loading = False
            with self._boundary.until_failure("recovery") as is_on:
                if is_on and self.parts is not None:
                    self.parts.recover()
        return self.parts

    def _judge_now(self) -> bool:
        """True: nothing went wrong that would be known here only."""
        parts = self._loaded()
        if parts is None:
            return False
        found = self.backend.read()
        for evidence in found:
            # Not before it is stored: a kill in between would lose it.
            if parts.pipeline.judge(evidence):
                self.backend.release(evidence)
            else:
                self._leaves_evidence = True
        self._read_start(parts, is_end=False)
        beside: Sequence[LagIssue] = ()
        with self._boundary("beside stalls") as is_on:
            if is_on:
                beside = parts.beside_stalls()
        for issue in beside:
            parts.pipeline.store_issue(issue)
        self._may_be_open |= bool(self._traced.store(parts) or found or beside)
        self._notify_ns = None
        with self._boundary("notifications"):
            if parts.notifier is not None:
                self._notify_ns = parts.notifier.look(time.monotonic_ns())
        # What is open can be closed behind our back (a daemon closes all descriptors), or inherited.
        if self._may_be_open and not is_short_of_descriptors():
            self._may_be_open = False
            self._close_store(parts)
        return True

    def _close_store(self, parts: EngineParts) -> None:
        with self._boundary("store") as is_on:
            if is_on:
                parts.sink.close()

    def _read_start(self, parts: EngineParts, *, is_end: bool) -> None:
        """One that took too long is reported when it is over; others are stored at the end."""
        if self._has_start:
            return
        start = None
        with self._boundary("startup") as is_on:
            if is_on:
                start = parts.start(is_end)
        if start is not None and (is_end or start.is_news):
            self._has_start = True
            parts.pipeline.store_issue(start)

    def finish(self) -> None:
        """Ends it. The program does not wait for long."""
        self._attachment.end()
        self._traced.tells(None)
        # An interceptor or reporter that ends the engine has a stall in hand, which is not stored yet.
        self._leaves_evidence |= self.drain.is_here()
        # Interceptors, reporters and disks may take any time.
        if not self.drain.finish(self._close):
            self._boundary.failed(
                "drain",
                TimeoutError("it did not end in time; the next run stores what is not stored yet"),
                keep=True,
            )
            # The drain goes on for as long as the process does. From here on it finds nothing to read, and
            # would remove what it has not read.
            self._leaves_evidence = True
            with self._boundary("engine"):
                self.backend.stop()
            with self._boundary("engine"):
                self.backend.let_go()
        self._traced.engine_runs(None)

    def _close(self) -> None:
        """The last thing that the drain does."""
        parts = self._loaded()
        if self.plugged is not None:
            self.plugged.stop()  # here, as it is others' code: the program does not wait for it for long
        with self._boundary("engine"):
            self.backend.stop()
        is_whole, traced = False, None
        if parts is not None:
            with self._boundary("drain"):
                is_whole = self._judge_now()
            with self._boundary("tracers"):
                traced = self._traced.end(parts)
        if self.plugged is not None:
            self.plugged.close()
        if parts is not None:
            is_whole &= self._close_parts(parts, traced)
        # What could not be stored may be recovered by the next start or command.
        is_whole &= not self._leaves_evidence
        with self._boundary("engine"):
            if is_whole:
                self.backend.discard()
            else:
                self.backend.let_go()

    def _close_parts(self, parts: EngineParts, traced: TraceFigures | None) -> bool:
        """False where the session should be stored, and could not be."""
        self._read_start(parts, is_end=True)
        session = self._ended(parts, traced)
        is_stored = self._store_session(parts, session)
        parts.pipeline.close(session)
        with self._boundary("notifications"):
            if parts.notifier is not None:
                parts.notifier.end(_NOTIFY_S)
        self._close_store(parts)
        return is_stored

    def _ended(self, parts: EngineParts, traced: TraceFigures | None) -> Session:
        """The session as it is at its end."""
        from dataclasses import replace

        from loopcanary.model import SessionEnd, TraceFigures

        return replace(
            as_it_is_now(parts.session),
            ended_wall_ns=parts.clock.to_wall_ns(time.monotonic_ns()),
            end=SessionEnd.EXIT,
            loops=self.loops(),
            statistics=self._counts(parts),
            traces=traced or TraceFigures(),
        )

    def _store_session(self, parts: EngineParts, session: Session) -> bool:
        pipeline = parts.pipeline
        if not (session.loops or pipeline.counts or pipeline.issue_counts or _is_the_program(session)):
            return True
        return pipeline.store_session(session)

    def let_go(self) -> None:
        """In a forked child: it is the parent's."""
        self._attachment.let_go()
        if self.plugged is not None:
            self.plugged.forget()
        self.backend.let_go()


def as_it_is_now(session: Session) -> Session:
    """With what the program has changed since it began."""
    if not priority_changes:
        return session
    from dataclasses import replace

    from loopcanary.model import PriorityChange
    from loopcanary.wire import from_wire

    return replace(
        session, priority_changes=tuple(from_wire(PriorityChange, one) for one in priority_changes)
    )


def _is_the_program(session: Session) -> bool:
    """Whether this process is what a person started with `loopcanary run`."""
    return os.environ.get("LOOPCANARY_RUN_PID") == str(session.pid)
