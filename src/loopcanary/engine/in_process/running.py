"""The engine while it runs: from the start of its threads to the last thing that its drain does."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loopcanary.engine.attachment import Attachment, priority_changes
from loopcanary.engine.fork_pause import ForkPause
from loopcanary.engine.in_process.drain import Drain
from loopcanary.facts import is_short_of_descriptors

if TYPE_CHECKING:
    from loopcanary._native import Native
    from loopcanary.engine import Boundary
    from loopcanary.engine.in_process.parts import EngineParts, FileBackend
    from loopcanary.engine.traced import EngineTraces
    from loopcanary.model import LoopHealth, Session, Stall, TraceFigures
    from loopcanary.protocols.tracing import Traces

_SHORT_LOOK_S, _SHORT_PATIENCE_S = 0.5, 5.0
"""How often it is asked whether the program has descriptors again, and for how long."""


class RunningEngine:
    """One run of the engine. Methods say on which thread they are called where it is not any."""

    def __init__(
        self, parts: EngineParts, *, native: Native | None, boundary: Boundary, traced: EngineTraces
    ) -> None:
        self.parts = parts
        self.drain = Drain(
            parts.backend,
            self._take,
            boundary,
            first=parts.recover,
            native=native,
            patience_s=self._patience_s,
        )
        self._boundary = boundary
        self._traced = traced
        self._attachment = Attachment(native)
        self._facts_stored = False
        self._leaves_evidence = False
        self._has_start = False
        self._short_since_s: float | None = None
        self._may_be_open = False
        """The store, which the drain closes when it has stored."""

    @property
    def session(self) -> Session:
        return self.parts.session

    @property
    def backend(self) -> FileBackend:
        return self.parts.backend

    def stalls(self) -> list[Stall]:
        """The last that were reported, oldest first."""
        return list(self.parts.pipeline.recent)

    def fork_pause(self) -> ForkPause:
        """A fork is about to be made."""
        return ForkPause(self.parts.backend, self.drain, self.parts.sink)

    def start(self) -> None:
        """Begins to watch. OSError or RuntimeError with the reason why it cannot."""
        self.parts.backend.start()

    def begin(self, stop: Callable[[], None], hand_over: Callable[[], object]) -> None:
        """As Engine: starts the drain of a backend that runs, and all else. RuntimeError or OSError where the
        system gives no thread for it."""
        self.drain.start()
        hand_over()
        self._attachment.begin(self.parts.backend.listener, stop, self._renew_facts)
        self.parts.backend.set_facts(self.parts.facts())
        self._traced.engine_runs(self._begin_traces)
        self.parts.plugged.start()
        self._traced.tells(self._renew_facts)

    def give_up(self) -> None:
        """As Engine."""
        self.parts.backend.stop()
        self.parts.backend.discard()

    def _begin_traces(self, traces: Traces) -> None:
        traces.begin(self.parts.session, self.parts.clock, self.parts.backend.wake)

    def loop_seen(self) -> None:
        """By now `__main__` and sys.path are what they are going to be: the facts are made final, once."""
        if not self._facts_stored:
            self._facts_stored = True
            self._renew_facts()

    def _renew_facts(self) -> None:
        self._boundary.call("facts", lambda: self.parts.backend.set_facts(self.parts.facts()), keep=True)

    # ---- figures ----------------------------------------------------------------------------

    def statistics(self) -> dict[str, Any]:
        """As `Canary.statistics`."""
        call = self._boundary.call
        counts = call("statistics", self._counts, keep=True) or {}
        traced = call("tracers", self._traced.figures, keep=True) or {}
        loops = call("totals", self._loops_as_told, keep=True) or []
        return {**counts, "loops": loops, **traced}

    def loops(self) -> tuple[LoopHealth, ...]:
        """Figures of every watched thread up to now."""
        return self._boundary.call("totals", self._loops, keep=True) or ()

    def _loops(self) -> tuple[LoopHealth, ...]:
        now_ns = time.monotonic_ns()
        return self.parts.health(self.parts.backend.totals(), now_ns)

    def _loops_as_told(self) -> list[dict[str, Any]]:
        from loopcanary.wire import to_wire

        return [to_wire(loop) for loop in self._loops()]

    def _counts(self) -> dict[str, int]:
        parts = self.parts
        return {
            **parts.backend.statistics(),
            **parts.pipeline.counts,
            **parts.pipeline.issue_counts,
            **self._reporters_counts(),
            **parts.plugged.counts(),
            **self._boundary.counts(),
        }

    def _reporters_counts(self) -> dict[str, int]:
        """What those reporters did and dropped that count it."""
        told: dict[str, int] = {}
        for reporter in self.parts.reporters:
            counts = getattr(reporter, "counts", None)
            if counts is not None:
                told |= self._boundary.call(f"counts of {reporter.name}", counts, keep=True) or {}
        return told

    # ---- the drain's work -------------------------------------------------------------------

    def _patience_s(self) -> float | None:
        patience_s = self._traced.patience_s()
        if self._short_since_s is None:
            return patience_s
        return _SHORT_LOOK_S if patience_s is None else min(patience_s, _SHORT_LOOK_S)

    def _take(self) -> None:
        """Later, where the program has used up its descriptors: what is loaded and stored takes some, which
        the program, as it closes one, expects to get again."""
        if not is_short_of_descriptors():
            self._short_since_s = None
        elif self._short_since_s is None:
            self._short_since_s = time.monotonic()
        if self._short_since_s is None or time.monotonic() - self._short_since_s > _SHORT_PATIENCE_S:
            self._take_now()

    def _take_now(self) -> bool:
        """True: nothing went wrong that would be known here only."""
        parts = self.parts
        taken = parts.backend.take()
        for evidence in taken:
            # Not before it is stored: a kill in between would lose it.
            if parts.pipeline.take(evidence):
                parts.backend.release(evidence)
            else:
                self._leaves_evidence = True
        self._take_start(is_end=False)
        slow = self._boundary.call("methods", parts.slow_calls, keep=True) or ()
        for issue in slow:
            parts.pipeline.take_issue(issue)
        self._may_be_open |= bool(self._traced.take(parts) or taken or slow)
        # What is open can be closed behind our back (a daemon closes all descriptors), or inherited.
        if self._may_be_open and not is_short_of_descriptors():
            self._may_be_open = False
            self._boundary.call("store", parts.sink.close, keep=True)
        return True

    def _take_start(self, *, is_end: bool) -> None:
        """One that took too long is reported when it is over; others are stored at the end."""
        if self._has_start:
            return
        start = self._boundary.call("startup", self.parts.start, is_end, keep=True)
        if start is not None and (is_end or start.is_news):
            self._has_start = True
            self.parts.pipeline.take_issue(start)

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
                TimeoutError("it did not end in time; what it has not stored yet is left to the next start"),
                keep=True,
            )
            # The drain goes on for as long as the process does. From here on it finds nothing to take, and
            # would remove what it has not taken.
            self._leaves_evidence = True
            self._boundary.call("engine", self.parts.backend.stop, keep=True)
            self._boundary.call("engine", self.parts.backend.let_go, keep=True)
        self._traced.engine_runs(None)

    def _close(self) -> None:
        """The last thing that the drain does."""
        call, parts = self._boundary.call, self.parts
        parts.plugged.stop()  # here, as it is others' code: the program does not wait for it for long
        call("engine", parts.backend.stop, keep=True)
        is_whole = bool(call("drain", self._take_now, keep=True))
        traced = call("tracers", self._traced.end, parts, keep=True)
        parts.plugged.close()
        self._take_start(is_end=True)
        session = self._ended(traced)
        is_whole &= self._store_session(session)
        for reporter in parts.reporters:
            closing = list(parts.pipeline.recent)
            call(f"reporter {reporter.name}", reporter.close, session, closing)
        call("store", parts.sink.close, keep=True)
        # What could not be stored may be taken in by the next start or command.
        is_whole &= not self._leaves_evidence
        call("engine", parts.backend.discard if is_whole else parts.backend.let_go, keep=True)

    def _ended(self, traced: TraceFigures | None) -> Session:
        """The session as it is at its end."""
        from loopcanary.model import SessionEnd, TraceFigures

        parts = self.parts
        return replace(
            as_it_is_now(parts.session),
            ended_wall_ns=parts.clock.to_wall_ns(time.monotonic_ns()),
            end=SessionEnd.EXIT,
            loops=self.loops(),
            statistics=self._boundary.call("statistics", self._counts, keep=True) or {},
            traces=traced or TraceFigures(),
        )

    def _store_session(self, session: Session) -> bool:
        """False where it should be stored, and could not be."""
        pipeline = self.parts.pipeline
        if not (session.loops or pipeline.counts or pipeline.issue_counts or _is_the_program(session)):
            return True

        def put() -> bool:
            self.parts.sink.put_session(session)
            return True

        return bool(self._boundary.call("store", put, keep=True))

    def let_go(self) -> None:
        """In a forked child: it is the parent's."""
        self._attachment.let_go()
        self.parts.plugged.forget()
        self.parts.backend.let_go()


def as_it_is_now(session: Session) -> Session:
    """With what the program has changed since it began."""
    if not priority_changes:
        return session
    from loopcanary.model import PriorityChange
    from loopcanary.wire import from_wire

    return replace(
        session, priority_changes=tuple(from_wire(PriorityChange, one) for one in priority_changes)
    )


def _is_the_program(session: Session) -> bool:
    """Whether this process is what a person started with `loopcanary run`."""
    return os.environ.get("LOOPCANARY_RUN_PID") == str(session.pid)
