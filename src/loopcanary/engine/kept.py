"""The engine whose stalls a keeper judges: it records, and loads nothing of a verdict."""

from __future__ import annotations

# Before a thread of ours does: a program that imports importlib.machinery meanwhile, as runpy does, would get
# a second importlib._bootstrap, which cannot import.
import importlib  # noqa: F401
import sys

from loopcanary.engine.attachment import Attachment
from loopcanary.engine.recorder import KEEPER, is_crowded

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from loopcanary.engine import Boundary
    from loopcanary.engine.fork_pause import ForkPause
    from loopcanary.engine.parts import Plugged
    from loopcanary.engine.recorder import KeeperLine, Recorder
    from loopcanary.engine.traced import EngineTraces
    from loopcanary.model import LoopHealth, Session, Stall
    from loopcanary.protocols.tracing import Traces

    class LiveFacts(Protocol):
        """Those of the session, in their form on the wire."""

        session: dict[str, Any]

        def __call__(self) -> dict[str, Any]: ...

        def code_paths(self) -> dict[str, Any]: ...

    class OwnFigures(Protocol):
        """What the flight file and the store say of this process; loaded when it is asked."""

        def session(self) -> Session: ...

        def stalls(self) -> list[Stall]: ...

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
        facts: LiveFacts,
        traced: EngineTraces,
        plugged: Plugged | None,
        figures: Callable[[], OwnFigures],
        loads: Callable[[Callable[[], Any]], Any],
        refused: Callable[[], object],
        note: Callable[[Traces], object],
        ended: Callable[[], object],
    ) -> None:
        """`keeper`: what starts it. `loads` calls what
        imports, so that no fork comes into its middle. `refused`: called on a thread of ours, when no keeper
        can be had. `note` has traces note beside the file what they see; `ended`: called at the end, with the
        file still there."""
        self.backend = recorder
        self.plugged = plugged
        self._boundary = boundary
        self._keeper = keeper
        self.facts = facts
        self._traced = traced
        self._make_figures = figures
        self._figures: OwnFigures | None = None
        self._loads = loads
        self._refused = refused
        self._note = note
        self._ended = ended
        self._attachment = Attachment(recorder.native)
        self._facts_stored = False

    def start(self) -> None:
        """Begins to watch. OSError or RuntimeError with the reason why it cannot."""
        self.backend.record(keeper=self._keeper())
        if is_crowded(self.backend.folder):
            with self._boundary("keeper"):
                self.backend.native.start_keeper()

    def begin(self, stop: Callable[[], None], hand_over: Callable[[], object]) -> None:
        """All else that a start does. `stop`: what ends the engine before a worker of multiprocessing does;
        `hand_over`: called when this one can begin: the one before lets go. What it raises, nothing of this
        has begun."""
        hand_over()
        self._attachment.begin(self.backend.listener, stop, self._renew_facts)
        self.leave_to_keeper()
        self.backend.set_facts(self.facts())
        self._traced.engine_runs(self._note)
        if self.plugged is not None:
            self.plugged.start()
        self._traced.tells(self._renew_facts)

    def leave_to_keeper(self) -> None:
        """`refused` is called once when no keeper can be had: now, or later."""
        self.backend.native.set_taker(KEEPER)
        self.backend.native.on_take_over(self._refused)

    def hand_over(self) -> None:
        """The program judges from now on."""
        self._attachment.end()

    def give_up(self) -> None:
        """It could not begin, and no other goes on: ends what `start` began."""
        self.backend.stop()
        self.backend.discard()

    def loop_seen(self) -> None:
        """By now `__main__` and sys.path are what they are going to be: the facts are made final, once."""
        if not self._facts_stored:
            self._facts_stored = True
            self._renew_facts()

    def _renew_facts(self) -> None:
        with self._boundary("facts"):
            self.backend.set_facts(self.facts())

    # ---- figures ----------------------------------------------------------------------------

    def _read(self) -> OwnFigures:
        if self._figures is None:
            self._figures = self._make_figures()
        return self._figures

    def _ask(self, part: str, ask: Callable[[], Any]) -> Any:
        with self._boundary(part):
            return self._loads(ask)
        return None

    @property
    def session(self) -> Session:
        session: Session = self._loads(lambda: self._read().session())
        return session

    def stalls(self) -> list[Stall]:
        """The last of this process, oldest first."""
        return self._ask("reading", lambda: self._read().stalls()) or []

    def loops(self) -> tuple[LoopHealth, ...]:
        """Figures of every watched thread up to now."""
        return self._ask("totals", lambda: self._read().loops()) or ()

    def statistics(self) -> dict[str, Any]:
        """As `Canary.statistics`."""
        counts = self._ask("statistics", lambda: self._read().statistics()) or {}
        traced = self._ask("tracers", self._traced.figures) or {}
        plugged = {} if self.plugged is None else self._ask("tracers", self.plugged.counts) or {}
        return {**counts, **plugged, **self._boundary.counts(), **traced}

    # ---- forks and the end ------------------------------------------------------------------

    def fork_pause(self) -> ForkPause:
        """A fork is about to be made."""
        from loopcanary.engine.fork_pause import ForkPause

        return ForkPause(self.backend)

    def finish(self) -> None:
        """Ends it. The program does not wait for long."""
        self._attachment.end()
        self._traced.tells(None)
        self.backend.native.on_take_over(None)
        try:
            if self.plugged is not None:
                self.plugged.stop()
            with self._boundary("keeper"):
                absolutely(self._ended)
            if self.plugged is not None:
                self.plugged.close()
        except KeyboardInterrupt:  # a person waits no longer
            self.backend.stop()
        else:
            self.backend.stop()

    def let_go(self) -> None:
        """In a forked child: it is the parent's."""
        self._attachment.let_go()
        if self.plugged is not None:
            self.plugged.forget()
        if self._figures is not None:
            self._figures.close()


def absolutely(make: Callable[[], Any]) -> Any:
    """What `make` gives, and raises; it imports. Python looks into no entry of sys.path that is no text."""
    if all(one.startswith("/") for one in sys.path if type(one) is str):
        return make()
    from loopcanary.engine.import_path import found_absolutely

    return found_absolutely(make)
