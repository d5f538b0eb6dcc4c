"""How loops report to the portable engine by hooks of their own.

The same words as the native engine's LoopHooks (native/probes/hooks/loop_hooks.h), in Python: a probe that
speaks them serves both.

    run_begin()        the loop begins to run on this thread: the first turn. True: in a turn of a loop
                       around it
    wait_begin()       the loop is about to wait: the turn is over
    wait_end()         the wait is over: the next turn
    work_begin(work)   a callback; `work` names it (names.names_of_work). Outside a turn it is one
    work_end()
    works_end()        all that were begun in the innermost function of around_works
    run_end()          the loop runs no more
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from loopcanary.whose_exception import ours

if TYPE_CHECKING:
    from loopcanary.portable.lane import Lane
    from loopcanary.protocols.engine import PartBoundary


_NAMES_MAX = 1024


class _OpenWork(NamedTuple):
    """A callback that has begun."""

    lane: Lane
    work: object
    begin_ns: int
    is_turn: bool


class _Interrupted(NamedTuple):
    """What a loop that begins to run has interrupted."""

    lane: Lane | None
    was_in_turn: bool
    is_blind: bool
    base: int


class _ThreadState(threading.local):
    """What one thread has begun."""

    def __init__(self) -> None:
        self.lane: Lane | None = None
        self.is_blind = False
        """The running loop is timed by a ticker, as a whole: what runs inside it is not reported."""
        self.runs: list[_Interrupted] = []
        self.works: list[_OpenWork | None] = []
        self.base = 0
        """So many of the works were begun outside the loop that runs."""
        self.outside = 0
        """So many were begun before the innermost `works_enter`."""

    def work(self) -> _OpenWork | None:
        """The innermost one of the loop that runs."""
        return self.works[-1] if len(self.works) > self.base else None


class ThreadTurns:
    """Turns and callbacks of every thread, of one engine. Called on the thread that works.

    A loop inside a callback is not a part of the callback, which is judged up to there, and from there on
    anew. What was not begun is not ended either.
    """

    def __init__(
        self, clock: Callable[[], int], open_lane: Callable[[str], Lane | None], wake: Callable[[], None]
    ) -> None:
        """`open_lane`: one for the calling thread, of a kind; `wake`: called when work begins."""
        self._clock = clock
        self._open_lane = open_lane
        self._wake = wake
        self._here = _ThreadState()
        self._is_over = False
        self.faults = 0

    def stop(self) -> None:
        """Nothing is reported any more. Any thread."""
        self._is_over = True

    def run_begin(self, kind: str) -> bool:
        """A loop begins to run, perhaps inside of another one's callback. True: in a turn of that one."""
        here = self._here
        now_ns = self._enter(here)
        lane = self._lane(here, kind)
        if lane is not None:
            lane.begin(now_ns)
            self._wake()
        return here.runs[-1].was_in_turn

    def run_end(self) -> None:
        """The loop runs no more: the callback that it ran in goes on."""
        here = self._here
        lane = here.lane
        if lane is not None:
            self._interrupt(here, lane, self._clock())
        if here.runs:
            self._leave(here, lane)

    def enter(self, lane: Lane | None) -> None:
        """A loop begins to run that reports to its lane by itself; None: a ticker times it."""
        here = self._here
        self._enter(here)
        here.lane, here.is_blind = lane, lane is None

    def leave(self) -> None:
        here = self._here
        if here.runs:
            self._leave(here, None)

    def wait_begin(self, kind: str) -> None:
        here = self._here
        lane = self._lane(here, kind)
        if lane is not None:
            self._interrupt(here, lane, self._clock())

    def wait_end(self) -> None:
        """The loop's wait is over. Does nothing where the thread has no lane."""
        here = self._here
        lane = here.lane
        if lane is not None and lane.closed_ns is None and not self._is_over:
            self._resume(here, lane, self._clock())

    def work_begin(self, kind: str, work: object) -> None:
        here = self._here
        lane = self._lane(here, kind)
        if lane is None:
            here.works.append(None)
            return
        now_ns = self._clock()
        is_turn = not lane.epoch & 1
        if is_turn:
            lane.begin(now_ns)
            self._wake()
        here.works.append(_OpenWork(lane, work, now_ns, is_turn))
        lane.name_work(work)

    def work_end(self) -> None:
        """The callback ends that began last."""
        here = self._here
        ended = here.works.pop() if here.works else None
        if ended is None:
            return
        lane = ended.lane
        if lane.epoch & 1:
            around = here.work()
            now_ns = self._clock()
            lane.callbacks += 1
            lane.note_work(ended.work, _since(ended, now_ns), None if around is None else around.work)
            if ended.is_turn:
                lane.end(now_ns)

    def works_enter(self) -> int:
        """`works_end` ends what is begun from here on; the answer goes to `works_leave`."""
        here = self._here
        outer, here.outside = here.outside, len(here.works)
        return outer

    def works_end(self) -> None:
        while len(self._here.works) > self._here.outside:
            self.work_end()

    def works_leave(self, outer: int) -> None:
        """Ends the callbacks that began in the function."""
        self.works_end()
        self._here.outside = outer

    def _enter(self, here: _ThreadState) -> int:
        now_ns = self._clock()
        lane = here.lane
        was_in_turn = lane is not None and bool(lane.epoch & 1)
        if lane is not None:
            self._interrupt(here, lane, now_ns)
        here.runs.append(_Interrupted(lane, was_in_turn, here.is_blind, here.base))
        here.base = len(here.works)
        return now_ns

    def _leave(self, here: _ThreadState, ended: Lane | None) -> None:
        run = here.runs.pop()
        here.lane = run.lane or ended
        here.base, here.is_blind = run.base, run.is_blind
        if run.was_in_turn and run.lane is not None and run.lane.closed_ns is None and not self._is_over:
            self._resume(here, run.lane, self._clock())

    def _interrupt(self, here: _ThreadState, lane: Lane, now_ns: int) -> None:
        if not lane.epoch & 1:
            return
        work = here.work()
        if work is not None and work.lane is lane:
            lane.note_work(work.work, _since(work, now_ns))
        lane.end(now_ns)

    def _resume(self, here: _ThreadState, lane: Lane, now_ns: int) -> None:
        lane.begin(now_ns)
        work = here.work()
        if work is not None and work.lane is lane:
            lane.name_work(work.work)
        self._wake()

    def _lane(self, here: _ThreadState, kind: str) -> Lane | None:
        lane = here.lane
        if self._is_over or here.is_blind:
            return None
        if lane is None or lane.closed_ns is not None:
            lane = here.lane = self._open_lane(kind)
        return lane


def _hook(tell: Callable[[ThreadTurns, str, object], object]) -> Callable[..., None]:
    """A method that tells the engine that runs, if one does."""

    def hook(self: TurnHooks, work: object = None, *_: object) -> None:
        try:
            turns = self._turns()
            if turns is not None:
                tell(turns, self.kind, work)
        except ours():  # the failure is ours, and the loop must go on
            self._fault()

    return hook


class TurnHooks:
    """What a probe is given: the hooks of one kind of loop. Further arguments are ignored, so that a hook may
    be handed to a loop as it is. Raises nothing of ours."""

    def __init__(
        self,
        kind: str,
        loop_seen: Callable[[], object] | None,
        turns: Callable[[], ThreadTurns | None],
    ) -> None:
        """`loop_seen` is called at each run's begin, and starts the engine; `turns`: of the engine that
        runs, if one does."""
        self.kind = kind
        self._loop_seen = loop_seen
        self._turns = turns

    def run_begin(self, *_: object) -> bool:
        """The loop begins to run on this thread. True: in a turn of a loop around it."""
        try:
            if self._loop_seen is not None:
                self._loop_seen()
            turns = self._turns()
            return turns is not None and turns.run_begin(self.kind)
        except ours():  # as in _hook
            self._fault()
            return False

    run_end = _hook(lambda turns, *_: turns.run_end())
    wait_begin = _hook(lambda turns, kind, _: turns.wait_begin(kind))
    wait_end = _hook(lambda turns, *_: turns.wait_end())
    work_begin = _hook(lambda turns, kind, work: turns.work_begin(kind, work))
    work_end = _hook(lambda turns, *_: turns.work_end())
    works_end = _hook(lambda turns, *_: turns.works_end())
    """The callbacks end that were begun in the innermost call of `around_works`."""

    def around_wait(self, function: Callable[..., Any], /) -> Callable[..., Any]:
        """The function's call is the loop's wait. This and the next two: native/probes/hooks/loop_hooks.h."""

        def waiting(*args: Any, **names: Any) -> Any:
            self.wait_begin()
            try:
                return function(*args, **names)
            finally:
                self.wait_end()

        return update_wrapper(waiting, function)

    def around_works(self, function: Callable[..., Any], /) -> Callable[..., Any]:
        """Callbacks that begin in the function end with it."""

        def running(*args: Any, **names: Any) -> Any:
            turns = self._turns()
            before = 0 if turns is None else turns.works_enter()
            try:
                return function(*args, **names)
            finally:
                if turns is not None:
                    turns.works_leave(before)

        return update_wrapper(running, function)

    def around_work(
        self, function: Callable[..., Any], attribute: str, name_of: Callable[[type, type], str], /
    ) -> Callable[..., Any]:
        """The function's call is a callback, named by the types of its second argument and of its
        attribute."""
        known: dict[tuple[type, type], str] = {}

        def working(owner: Any, subject: Any, *args: Any, **names: Any) -> Any:
            types = (type(subject), type(getattr(subject, attribute, None)))
            name = known.get(types)
            if name is None:
                name = name_of(*types)
                if len(known) < _NAMES_MAX:
                    known[types] = name
            self.work_begin(name)
            try:
                return function(owner, subject, *args, **names)
            finally:
                self.work_end()

        return update_wrapper(working, function)

    def _fault(self) -> None:
        turns = self._turns()
        if turns is not None:
            turns.faults += 1


class Starter(Protocol):
    """The canary, which starts the engine."""

    @property
    def backend(self) -> Any:
        """The engine; None before its start."""

    @property
    def boundary(self) -> PartBoundary:
        """Contains what fails."""

    def start(self) -> None:
        """Starts the engine."""

    def loop_seen(self) -> None:
        """A loop begins to run."""


class CanaryTurns:
    """What probes of one canary are given (protocols.PortableSide)."""

    def __init__(self, canary: Starter) -> None:
        self._canary = canary

    def LoopHooks(  # noqa: N802 - as the extension has it
        self, kind: str, loop_seen: Callable[[], object] | None = None, /
    ) -> TurnHooks:
        return TurnHooks(kind, loop_seen, self._turns)

    def runs(self, loop: Any, kind: str | None = None) -> None:
        """A loop with asyncio's timers is about to run on this thread."""
        self._canary.start()
        backend, ident = self._canary.backend, threading.get_ident()
        if backend is not None:
            self._contain(backend.loops.started, loop, ident, kind)
            self._canary.loop_seen()

    def stopped(self, loop: Any) -> None:
        backend = self._canary.backend
        if backend is not None:
            self._contain(backend.loops.stopped, loop)

    def _contain(self, tell: Callable[..., object], *told: object) -> None:
        with self._canary.boundary("portable probe"):
            tell(*told)

    def _turns(self) -> ThreadTurns | None:
        """The turns of the engine, which starts with the first report."""
        if self._canary.backend is None:
            self._canary.start()
        return getattr(self._canary.backend, "turns", None)


def _since(work: _OpenWork, now_ns: int) -> int:
    """How long it has run, since a loop last ran inside it."""
    return max(0, now_ns - max(work.begin_ns, work.lane.begin_ns))
