"""The engine whose stalls a keeper takes: nothing of a verdict is loaded into the program for it.

Where code of the program's own wants to see what has ended, that is loaded when the first stall has.
"""

from __future__ import annotations

from loopcanary.engine.attachment import Attachment
from loopcanary.engine.recorder import PROGRAM, is_crowded

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

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

        def statistics(self) -> dict[str, Any]: ...

        def close(self) -> None: ...


class KeptEngine:
    """One run of it. Methods are called under the GIL, on any thread."""

    def __init__(
        self,
        recorder: Recorder,
        boundary: Boundary,
        *,
        keeper: Callable[[], KeeperLine],
        facts: Callable[[], dict[str, Any]],
        traced: EngineTraces,
        note: Callable[[Traces], object],
        figures: Callable[[], OwnFigures],
        take_over: Callable[[], object],
        ended: Callable[[], object],
        judges: bool,
        tells_end: bool,
    ) -> None:
        """`facts`: of the session, in their form on the wire; `note` has traces note for the keeper what they
        see; `take_over`: called when the program is to take its stalls, mostly on a thread of ours; `ended`:
        called at the end, with the file still there; `judges`: code of the program's own wants to see what
        has ended, and, with `tells_end`, that the program ends."""
        self.backend = recorder
        self._boundary = boundary
        self._keeper = keeper
        self.facts = facts
        self._traced = traced
        self._note = note
        self._make_figures = figures
        self._figures: OwnFigures | None = None
        self.loads: Callable[[Callable[[], Any]], Any] = _at_once
        """Calls what imports, so that no fork comes into its middle."""
        self._take_over = take_over
        self._ended = ended
        self._attachment = Attachment(recorder.native)
        self._facts_stored = False
        self._judges = judges
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
        counts = self._boundary.call("statistics", lambda: self._read().statistics(), keep=True) or {}
        traced = self._boundary.call("tracers", self._traced.figures, keep=True) or {}
        return {**counts, **self._boundary.counts(), **traced}

    def fork_pause(self) -> ForkPause:
        """A fork is about to be made."""
        from loopcanary.engine.fork_pause import ForkPause

        return ForkPause(self.backend)

    def start(self) -> None:
        """Begins to watch. OSError or RuntimeError with the reason why it cannot."""
        self.backend.record(keeper=self._keeper())
        if is_crowded(self.backend.folder):
            self._boundary.call("keeper", self.backend.native.start_keeper, keep=True)

    def begin(self, stop: Callable[[], None]) -> None:
        """All else that a start does. `stop`: see Attachment."""
        self._attachment.begin(self.backend.listener, stop, self._renew_facts)
        native = self.backend.native
        native.on_take_over(self._take_over)
        if self._judges:
            native.set_taker(PROGRAM)
        self.backend.set_facts(self.facts())
        self._traced.engine_runs(self._trace)
        self._traced.tells(self._renew_facts)

    def judge(self) -> None:
        """From now on what has ended is the program's own to judge; a keeper reports what goes on, and who
        died."""
        if not self._judges:
            self._judges = True
            self.backend.native.set_taker(PROGRAM)
            self.backend.set_facts(self.facts())
            self._traced.engine_runs(self._trace)

    def _trace(self, traces: Traces) -> None:
        if self._judges:  # what was traced is to be seen, too
            self._take_over()
        else:
            self._note(traces)

    @property
    def owes_verdicts(self) -> bool:
        """At the end: whether code of the program's own wants to see something."""
        native = self.backend.native
        return self._judges and (self._tells_end or native.recorded()[1] > 0 or native.calls_slow() > 0)

    def loop_seen(self) -> None:
        """By now `__main__` and sys.path are what they are going to be: the facts are made final, once."""
        if not self._facts_stored:
            self._facts_stored = True
            self._renew_facts()

    def _renew_facts(self) -> None:
        self._boundary.call("facts", lambda: self.backend.set_facts(self.facts()), keep=True)

    def hand_over(self) -> None:
        """A thread of the program takes the stalls from now on."""
        self._attachment.end()

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

    def let_go(self) -> None:
        """In a forked child: it is the parent's."""
        self._attachment.let_go()
        if self._figures is not None:
            self._figures.close()


def _at_once(make: Callable[[], Any]) -> Any:
    return make()
