"""Engines that load nothing of a verdict. A keeper takes the stalls of the native one.

Where there is none, or code of the program's own wants to see what has ended, what judges is loaded when the
first stall has ended.
"""

from __future__ import annotations

from _thread import get_ident, get_native_id

from loopcanary.engine.attachment import Attachment
from loopcanary.engine.recorder import LATER, PROGRAM, has_remains, is_crowded

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol

    from loopcanary._native import Native
    from loopcanary.engine import Boundary
    from loopcanary.engine.fork_pause import ForkPause
    from loopcanary.engine.recorder import KeeperLine, Recorder
    from loopcanary.engine.traced import EngineTraces
    from loopcanary.model import LoopHealth, Session, Stall
    from loopcanary.protocols.tracing import Traces

    class OwnFigures(Protocol):
        """What the flight file and the store say of this process; loaded when it is asked."""

        def session(self) -> Session: ...

        def stall_reader(self) -> Callable[[], list[Stall]]: ...

        def loops(self) -> tuple[LoopHealth, ...]: ...

        def loops_as_told(self) -> list[dict[str, Any]]: ...

        def statistics(self) -> dict[str, Any]: ...

        def close(self) -> None: ...


class LateEngine:
    """An engine that judges nothing, and has not loaded what that takes. Methods are called under the GIL, on
    any thread."""

    has_keeper = False

    def __init__(
        self,
        backend: Any,
        boundary: Boundary,
        *,
        native: Native | None,
        facts: Callable[[], dict[str, Any]],
        traced: EngineTraces,
        figures: Callable[[], OwnFigures],
        take_over: Callable[[bool], object],
        tells_end: bool,
    ) -> None:
        """`facts`: of the session, in their form on the wire; `take_over`: called when the program is to take
        its stalls, with True on a thread of ours, which gives way to forks; `tells_end`: code of the
        program's own wants to see that it ends."""
        self.backend = backend
        self._boundary = boundary
        self.facts = facts
        self._traced = traced
        self._make_figures = figures
        self._figures: OwnFigures | None = None
        self.loads: Callable[[Callable[[], Any]], Any] = _at_once
        """Calls what imports, so that no fork comes into its middle."""
        self._take_over = take_over
        self._attachment = Attachment(native)
        self._tells_end = tells_end

    @property
    def session(self) -> Session:
        return self._read().session()

    def _read(self) -> OwnFigures:
        if self._figures is None:
            self._figures = self.loads(self._make_figures)
        return self._figures

    def stalls(self) -> list[Stall]:
        """The last of this process, oldest first."""
        read = self._boundary.call("reading", lambda: self.loads(self._read().stall_reader), keep=True)
        return (read and self._boundary.call("reading", read, keep=True)) or []

    def loops(self) -> tuple[LoopHealth, ...]:
        """Figures of every watched thread up to now."""
        return self._boundary.call("totals", lambda: self._read().loops(), keep=True) or ()

    def statistics(self) -> dict[str, Any]:
        """As `Canary.statistics`."""
        call = self._boundary.call
        counts = call("statistics", lambda: self._read().statistics(), keep=True) or {}
        traced = call("tracers", self._traced.figures, keep=True) or {}
        loops = call("totals", lambda: self._read().loops_as_told(), keep=True) or []
        return {**counts, **self._boundary.counts(), "loops": loops, **traced}

    def fork_pause(self) -> ForkPause:
        """A fork is about to be made."""
        from loopcanary.engine.fork_pause import ForkPause

        return ForkPause(self.backend)

    def _load(self) -> None:
        """On a thread of ours."""
        self._take_over(True)

    def judge(self) -> None:
        """From now on what has ended is the program's own to judge."""

    @property
    def owes_verdicts(self) -> bool:
        """At the end: whether what judges is to be loaded now."""
        return self._tells_end or self._traced.traces is not None

    def load_again(self, *, has_keeper: bool, at_once: bool = False) -> None:
        """What judges could not be loaded: it is tried again later, or at once, while anything waits for it.
        `has_keeper`: one tells hangs meanwhile."""

    def hand_over(self) -> None:
        """A thread of the program takes the stalls from now on."""
        self._attachment.end()

    def give_up(self) -> None:
        """As Engine."""
        self.backend.stop()
        self.backend.discard()

    def let_go(self) -> None:
        """In a forked child: it is the parent's."""
        self._attachment.let_go()
        if self._figures is not None:
            self._figures.close()


class KeptEngine(LateEngine):
    """One run of the native one."""

    def __init__(
        self,
        recorder: Recorder,
        boundary: Boundary,
        *,
        keeper: Callable[[], KeeperLine] | None,
        note: Callable[[Traces, Callable[[], object] | None], object],
        ended: Callable[[], object],
        judges: bool,
        **more: Any,
    ) -> None:
        """As LateEngine. `keeper`: what starts it; None: there is none. `note` has traces note beside the
        file what they see, and call the second with what the program is to judge; `ended`: called at the end,
        with the file still there; `judges`: code of the program's own wants to see what has ended."""
        super().__init__(recorder, boundary, native=recorder.native, **more)
        self._keeper = keeper
        self.has_keeper = keeper is not None
        self._note = note
        self._ended = ended
        self._facts_stored = False
        self._has_leavings = False
        """Of other programs, which this one is to take in."""
        self._judges = judges or keeper is None

    def start(self) -> None:
        """Begins to watch. OSError or RuntimeError with the reason why it cannot."""
        self.backend.record(keeper=None if self._keeper is None else self._keeper())
        if self.has_keeper and is_crowded(self.backend.folder):
            self._boundary.call("keeper", self.backend.native.start_keeper, keep=True)

    def begin(self, stop: Callable[[], None], hand_over: Callable[[], object]) -> None:
        """As Engine."""
        hand_over()
        self._attachment.begin(self.backend.listener, stop, self._renew_facts)
        native = self.backend.native
        native.on_take_over(self._load)
        if self._judges:
            native.set_taker(PROGRAM if self.has_keeper else LATER)
        self.backend.set_facts(self.facts())
        self._traced.engine_runs(self._trace)
        self._traced.tells(self._renew_facts)
        folder = self.backend.folder
        if not self.has_keeper and (has_remains(folder) or is_crowded(folder)):
            self._has_leavings = True
            native.load_soon()

    def judge(self) -> None:
        """From now on what has ended is the program's own to judge; a keeper reports what goes on, and who
        died."""
        if not self._judges:
            self._judges = True
            self.backend.native.set_taker(PROGRAM)
            self.backend.set_facts(self.facts())
            if self._traced.traces is not None:  # what they note is read by the keeper still
                self._take_over(False)

    def _trace(self, traces: Traces) -> None:
        self._note(traces, self.backend.native.load_soon if self._judges else None)

    @property
    def owes_verdicts(self) -> bool:
        """As LateEngine: code of the program's own wants to see something."""
        native = self.backend.native
        has_any = self._has_leavings or native.recorded()[1] > 0 or native.calls_slow() > 0
        return self._judges and (super().owes_verdicts or has_any)

    def loop_seen(self) -> None:
        """By now `__main__` and sys.path are what they are going to be: the facts are made final, once."""
        if not self._facts_stored:
            self._facts_stored = True
            self._renew_facts()

    def _renew_facts(self) -> None:
        self._boundary.call("facts", lambda: self.backend.set_facts(self.facts()), keep=True)

    def load_again(self, *, has_keeper: bool, at_once: bool = False) -> None:
        """As LateEngine."""
        self.backend.native.set_taker(PROGRAM if has_keeper else LATER)
        self.backend.native.load_again(self._load)
        if at_once:
            self.backend.native.load_soon()

    def finish(self) -> None:
        """Ends it. The program does not wait for long."""
        self._attachment.end()
        self._traced.tells(None)
        self.backend.native.on_take_over(None)
        try:
            self._boundary.call("keeper", self._ended, keep=True)
        except KeyboardInterrupt:  # a person waits no longer
            self.backend.stop()
        else:
            self.backend.stop()


class Loading:
    """What is loaded while the program runs: not in the middle of a fork, nor a fork in its middle.

    No lock is held meanwhile. Who imports may have to wait for a module that another thread imports, and that
    thread may be asking for what is loaded.
    """

    def __init__(self, parts: Sequence[Callable[[], object]]) -> None:
        """`parts`: what judges."""
        self._parts = parts
        self._loaded = 0
        self.is_over = False
        """The end loads what is missing."""
        self.forget()

    def forget(self) -> None:
        """In a forked child."""
        self._forks = self._tid = 0
        self._gave_way = False
        self._inside: list[int] = []
        """Threads that load, once for each call."""

    def call(self, make: Callable[[], Any]) -> Any:
        """What `make` gives, and raises, when no fork is being made. Any thread."""
        me = get_ident()
        self._inside.append(me)  # before forks are looked for: one that begins now sees it
        if self._forks and self._inside.count(me) == 1:
            from loopcanary.engine.fork_pause import wait_for_forks  # loaded by the fork

            wait_for_forks(lambda: self._forks, self._inside, me)
        try:
            return make()
        finally:
            self._inside.remove(me)

    def load(
        self, call: Callable[[Callable[[], object]], object], last: Callable[[], object], *, gives_way: bool
    ) -> bool:
        """`call` loads a part, and calls `last`, which uses them. False: nothing more is to be done, or when
        a fork is over: on a thread of ours it ends for one, so that a program of one thread stays one."""
        self._tid = get_native_id() if gives_way else 0
        while not (gives_way and self._has_to_end()):
            if self._loaded == len(self._parts):
                call(last)
                return True
            self._loaded += 1
            call(self._parts[self._loaded - 1])
        return False

    def _has_to_end(self) -> bool:
        self._gave_way = self._forks > 0
        # A fork that was over meanwhile starts nothing again.
        return self.is_over or (self._gave_way and self._forks > 0)

    def is_busy(self) -> bool:
        """Whether another thread loads."""
        return any(one != get_ident() for one in self._inside)

    def fork_begins(self) -> None:
        """Waits until no other thread loads, if that is soon. The forking thread."""
        from loopcanary.engine.fork_pause import wait_for_loads

        self._forks += 1
        wait_for_loads(self.is_busy, self._tid)
        self._tid = 0

    def fork_is_over(self) -> bool:
        """Whether something is to be loaded again. The forking thread, in the parent."""
        self._forks -= 1
        gave_way, self._gave_way = self._gave_way, False
        return gave_way


def _at_once(make: Callable[[], Any]) -> Any:
    return make()
