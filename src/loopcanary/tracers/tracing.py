"""Gives traces to probes, keeps what they tell, and hands it to the drain."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from loopcanary.built_in import BUILT_IN, TRACERS
from loopcanary.model.figures.frames import ShownFrame
from loopcanary.model.figures.traces import TraceFigures
from loopcanary.registry import REGISTRY, Registration
from loopcanary.tracers.desk import TracerDesks
from loopcanary.tracers.frames import BadSlice
from loopcanary.tracers.idle import RawIdleLag
from loopcanary.tracers.input import RawInputLag
from loopcanary.tracers.judging import Judging, Raw, ended_ns
from loopcanary.tracers.traces import thread_name

if TYPE_CHECKING:
    from loopcanary.model import Clock, InputFigures, LagIssue, Session, Stall
    from loopcanary.protocols.tracing import FrameTrace, IdleTrace, InputTrace, ProbeTracer
    from loopcanary.tracers.frames_listeners import FrameListeners

SETTLE_NS = 500_000_000
"""What a lag rests on, a stall that ended with it, is known to the drain by then."""
_WAITING_MAX = 256


class Tracing:
    """See protocols.Tracers and protocols.Traces. Nothing is raised."""

    def __init__(
        self,
        *,
        scene: Callable[[], str | None],
        listeners: FrameListeners,
        failed: Callable[[str, Exception], object],
        monotonic_ns: Callable[[], int],
    ) -> None:
        """`scene`: what loopcanary.scene() says on the calling thread. `failed` gets what fails."""
        self.scene = scene
        """Where the program says that it is, on the calling thread."""
        self.listening = listeners.registered
        self._listeners = listeners
        self._tell_failure = failed
        self._judging: Judging | None = None
        self._wake: Callable[[], None] | None = None
        self.input_elsewhere: Callable[[], Sequence[InputFigures]] = tuple
        """Figures of input that is timed without a tracer."""
        self.desks = TracerDesks(lambda: (thread_name(), self.scene()), self._ring, monotonic_ns)
        """Of plugged-in tracers."""
        self._clear()

    def _clear(self) -> None:
        self._tracers: dict[str, ProbeTracer] = {}
        self._waiting: deque[Raw] = deque(maxlen=_WAITING_MAX)
        self._has_news = False
        self._events_told = 0

    # ---- protocols.Tracers: the probes ----------------------------------------------------------

    def frames(self, loop_kind: str, refresh_hz: float = 60.0) -> FrameTrace:
        """For one surface of the calling thread."""
        trace: FrameTrace = self._tracer("frames").trace(loop_kind, refresh_hz)
        return trace

    def input(self, loop_kind: str, *, limit_ns: int | None = None, one_of: int = 1) -> InputTrace:
        """For the calling thread."""
        trace: InputTrace = self._tracer("input").trace(loop_kind, limit_ns, one_of)
        return trace

    def idle(self, loop_kind: str) -> IdleTrace:
        """For the calling thread."""
        trace: IdleTrace = self._tracer("idle").trace(loop_kind)
        return trace

    def _tracer(self, name: str) -> ProbeTracer:
        """The registered one, made for the first probe that asks."""
        if name not in self._tracers:
            built_in = Registration(TRACERS, name, BUILT_IN[TRACERS][name])
            try:
                tracer = self._made(REGISTRY.find(TRACERS, name) or built_in)
            except Exception as error:  # noqa: BLE001 - the program's own, in the place of ours
                self._tell_failure(f"tracer {name}", error)
                tracer = self._made(built_in)
            self._tracers = {**self._tracers, name: tracer}
        return self._tracers[name]

    def _made(self, registered: Registration) -> ProbeTracer:
        tracer: ProbeTracer = registered.load()()
        tracer.init(self)
        if self._wake is not None:
            tracer.start()
        return tracer

    # ---- who hears from the tracers -------------------------------------------------------------

    def slice_over(self, bad: BadSlice | None) -> None:
        """Six seconds of frames are over: worth a look of the drain."""
        self._has_news = True
        if bad is not None:
            self._waiting.append(bad)
        self._ring()

    def shown(self, frame: ShownFrame) -> None:
        """A frame was shown, and there are listeners."""
        self._listeners.tell(frame)

    def lagged(self, lag: RawInputLag | RawIdleLag) -> None:
        """An event was handled too late, or idle work took too long."""
        self._has_news = True
        self._waiting.append(lag)
        self._ring()

    def failed(self, error: Exception) -> None:
        self._tell_failure("tracers", error)

    def _ring(self) -> None:
        wake = self._wake
        if wake is not None:
            wake()

    # ---- protocols.Traces: the engine -----------------------------------------------------------

    def begin(self, session: Session, clock: Clock, wake: Callable[[], None]) -> None:
        self._clear_of_another(session.id)
        self._judging = Judging(session, clock)
        self._wake = wake
        self._listeners.renew()
        for tracer in self._tracers.values():
            tracer.start()
        if self._waiting or self._has_news or self.desks.next_ns() is not None:
            wake()

    def _clear_of_another(self, session: str) -> None:
        """Traces stay with their probes from one engine to the next; what they hold is the earlier one's."""
        if self._judging is not None and self._judging.session.id != session:
            self._waiting.clear()

    def end(self) -> None:
        self._wake = None
        for tracer in self._tracers.values():
            tracer.stop()
        self._listeners.end()

    def close(self) -> TraceFigures:
        figures = self.figures()
        for tracer in self._tracers.values():
            tracer.destroy()
        return figures

    def forget(self) -> None:
        """In a forked child."""
        self._wake = None
        self._judging = None
        self.desks.forget()
        self._clear()
        self._listeners.renew()

    def take(self, now_ns: int, stalls: Iterable[Stall], *, is_last: bool) -> Sequence[LagIssue]:
        """Issues that are ripe."""
        ripe: list[Raw] = []
        while self._waiting and (is_last or ended_ns(self._waiting[0]) + SETTLE_NS <= now_ns):
            ripe.append(self._waiting.popleft())
        if self._judging is None:
            return ()
        told = self._told(self._judging, now_ns, stalls, is_last=is_last)
        if not ripe:
            return told
        known = list(stalls)
        return [*(self._judging.judge(raw, known) for raw in ripe), *told]

    def _told(
        self, judging: Judging, now_ns: int, stalls: Iterable[Stall], *, is_last: bool
    ) -> Sequence[LagIssue]:
        """What third parties' tracers reported, as far as it is sound."""
        found: list[LagIssue] = []
        for desk, told in self.desks.take(None if is_last else now_ns - SETTLE_NS, now_ns):
            try:
                found.append(judging.complete(told, list(stalls)))
                desk.count("reported")
            except Exception as error:  # noqa: BLE001 - a third party's object
                desk.count("refused")
                self._tell_failure(f"issue of tracer {desk.name}", error)
        return found

    def patience_s(self, now_ns: int) -> float | None:
        """When the next one is ripe."""
        told_ns = self.desks.next_ns()
        ripe = [] if told_ns is None else [told_ns]
        with suppress(IndexError):
            ripe.append(ended_ns(self._waiting[0]))
        return max(0.0, (min(ripe) + SETTLE_NS - now_ns) / 1_000_000_000) if ripe else None

    def news(self) -> TraceFigures | None:
        """The figures, where a slice, a lag or input has come to them."""
        events = sum(tracer.events for tracer in self._tracers.values())
        events += sum(figures.events for figures in self.input_elsewhere())
        if not self._has_news and events == self._events_told:
            return None
        self._has_news, self._events_told = False, events
        return self.figures()

    def figures(self) -> TraceFigures:
        clock = self._judging.clock if self._judging is not None else None
        if clock is None:
            return TraceFigures()
        found = {name: tracer.figures(clock) for name, tracer in self._tracers.items()}
        return TraceFigures(**{**found, "input": (*found.get("input", ()), *self.input_elsewhere())})
