"""Gives traces to probes, keeps what they tell, and hands it to the drain."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from loopcanary.model.figures.frames import ShownFrame
from loopcanary.model.figures.lags import INPUT_LAG_NS
from loopcanary.model.figures.traces import TraceFigures
from loopcanary.tracers.desk import TracerDesk
from loopcanary.tracers.frames import BadSlice, FrameTracer
from loopcanary.tracers.idle import IdleTracer, RawIdleLag
from loopcanary.tracers.input import InputTracer, RawInputLag
from loopcanary.tracers.judging import Judging, Raw, ended_ns
from loopcanary.tracers.reading import figures_of

if TYPE_CHECKING:
    from loopcanary.model import Clock, InputFigures, LagIssue, Session, Stall
    from loopcanary.tracers.frames_listeners import FrameListeners

SETTLE_NS = 500_000_000
"""What a lag rests on, a stall that ended with it, is known to the drain by then."""
_WAITING_MAX = 256
_TRACERS_MAX = 256


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
        """`scene`: what loopcanary.scene() says on the calling thread. `failed` hears of what fails."""
        self.scene = scene
        """Where the program says that it is, on the calling thread."""
        self.listening = listeners.registered
        self._listeners = listeners
        self._tell_failure = failed
        self._monotonic_ns = monotonic_ns
        self._judging: Judging | None = None
        self._wake: Callable[[], None] | None = None
        self.input_elsewhere: Callable[[], Sequence[InputFigures]] = tuple
        """Figures of input that is timed without a tracer."""
        self._desks: list[TracerDesk] = []
        self._clear()

    def _clear(self) -> None:
        self._frames: list[FrameTracer] = []
        self._input: dict[tuple[int, str], InputTracer] = {}
        self._idle: dict[tuple[int, str], IdleTracer] = {}
        self._waiting: deque[Raw] = deque(maxlen=_WAITING_MAX)
        self._has_news = False
        self._events_told = 0

    # ---- protocols.Tracers: the probes ----------------------------------------------------------

    def frames(self, loop_kind: str, refresh_hz: float = 60.0) -> FrameTracer:
        """For one surface of the calling thread."""
        ident, thread = threading.get_ident(), _thread_name()
        for tracer in self._frames:
            if tracer.is_closed and (tracer.thread, tracer.loop) == (thread, loop_kind):
                tracer.open_again(refresh_hz)  # windows come and go: what they tell together is one
                return tracer
        tracer = FrameTracer(self, thread=thread, ident=ident, loop=loop_kind, refresh_hz=refresh_hz)
        if len(self._frames) < _TRACERS_MAX:
            self._frames = [*self._frames, tracer]
        return tracer

    def input(self, loop_kind: str, *, limit_ns: int | None = None) -> InputTracer:
        """For the calling thread."""
        key = threading.get_ident(), loop_kind
        tracer = self._input.get(key)
        if tracer is None:
            limit_ns = INPUT_LAG_NS if limit_ns is None else limit_ns
            tracer = InputTracer(self, thread=_thread_name(), loop=loop_kind, limit_ns=limit_ns)
            if len(self._input) < _TRACERS_MAX:
                self._input = {**self._input, key: tracer}
        return tracer

    def idle(self, loop_kind: str) -> IdleTracer:
        """For the calling thread."""
        key = threading.get_ident(), loop_kind
        tracer = self._idle.get(key)
        if tracer is None:
            tracer = IdleTracer(self, thread=_thread_name(), loop=loop_kind)
            if len(self._idle) < _TRACERS_MAX:
                self._idle = {**self._idle, key: tracer}
        return tracer

    def desk(self, name: str, admits: Callable[[int], bool]) -> TracerDesk:
        """For a third party's tracer; `admits`: whether one more issue of its own may pass at this time."""
        desk = TracerDesk(
            name,
            admits=admits,
            here=lambda: (_thread_name(), self.scene()),
            ring=self._ring,
            monotonic_ns=self._monotonic_ns,
        )
        self._desks = [*self._desks, desk]
        return desk

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

    def input_lagged(self, lag: RawInputLag) -> None:
        self._lagged(lag)

    def idle_lagged(self, lag: RawIdleLag) -> None:
        self._lagged(lag)

    def failed(self, error: Exception) -> None:
        self._tell_failure("tracers", error)

    def _lagged(self, raw: Raw) -> None:
        self._has_news = True
        self._waiting.append(raw)
        self._ring()

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
        if self._waiting or self._has_news or any(desk.next_ns() is not None for desk in self._desks):
            wake()

    def _clear_of_another(self, session: str) -> None:
        """Traces stay with their probes from one engine to the next: what they told is the earlier one's."""
        if self._judging is not None and self._judging.session.id != session:
            self._waiting.clear()

    def end(self) -> None:
        self._wake = None
        for tracer in self._frames:
            tracer.finish()
        self._listeners.end()

    def leave(self, desks: Iterable[TracerDesk]) -> None:
        """Their tracers have ended, and all that they told was taken."""
        gone = set(map(id, desks))
        self._desks = [desk for desk in self._desks if id(desk) not in gone]

    def forget(self) -> None:
        """In a forked child."""
        self._wake = None
        self._judging = None
        self._desks = []
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
        """What third parties' tracers told, as far as it is sound."""
        found: list[LagIssue] = []
        for desk in self._desks:
            for told in desk.take(None if is_last else now_ns - SETTLE_NS, now_ns):
                try:
                    found.append(judging.complete(told, list(stalls)))
                    desk.count("reported")
                except Exception as error:  # noqa: BLE001 - a third party's object
                    desk.count("refused")
                    self._tell_failure(f"issue of tracer {desk.name}", error)
        return found

    def patience_s(self, now_ns: int) -> float | None:
        """When the next one is ripe."""
        ripe = [told_ns for desk in self._desks if (told_ns := desk.next_ns()) is not None]
        with suppress(IndexError):
            ripe.append(ended_ns(self._waiting[0]))
        return max(0.0, (min(ripe) + SETTLE_NS - now_ns) / 1_000_000_000) if ripe else None

    def news(self) -> TraceFigures | None:
        """The figures, where a slice, a lag or input has come to them."""
        events = sum(tracer.events for tracer in list(self._input.values()))
        events += sum(figures.events for figures in self.input_elsewhere())
        if not self._has_news and events == self._events_told:
            return None
        self._has_news, self._events_told = False, events
        return self.figures()

    def figures(self) -> TraceFigures:
        clock = self._judging.clock if self._judging is not None else None
        if clock is None:
            return TraceFigures()
        figures = figures_of(self._frames, self._input.values(), self._idle.values(), clock)
        more = self.input_elsewhere()
        return replace(figures, input=(*figures.input, *more)) if more else figures


def _thread_name() -> str:
    """The calling thread's name. Asking `threading` for it would make an object that the program sees."""
    thread = threading._active.get(threading.get_ident())  # type: ignore[attr-defined]  # noqa: SLF001
    name = getattr(thread, "name", None)
    return name if isinstance(name, str) else f"thread {threading.get_native_id()}"
