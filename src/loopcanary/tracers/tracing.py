"""Gives traces to probes, keeps what they report, and hands it on: to the drain of this process, or to the
notes that its keeper reads. What judges is not loaded for the latter."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol

from loopcanary.built_in import BUILT_IN, TRACERS
from loopcanary.model.tracer_states import TracerStep
from loopcanary.registry import REGISTRY, Registration
from loopcanary.tracers.life import TracerLife
from loopcanary.tracers.traces import thread_name
from loopcanary.whose_exception import ours, ours_of

if TYPE_CHECKING:
    from collections.abc import Container

    from loopcanary.model import Clock, InputFigures, LagIssue, Session, Stall
    from loopcanary.model.figures import TraceFigures
    from loopcanary.protocols.tracing import FrameTrace, IdleTrace, InputTrace, ProbeTracer, TracerHeard
    from loopcanary.tracers.desk import TracerDesks
    from loopcanary.tracers.frames import FrameListeners, SceneSlice
    from loopcanary.tracers.idle import RawIdleLag
    from loopcanary.tracers.input import RawInputLag
    from loopcanary.tracers.judging import Judging, Raw
    from loopcanary.tracers.notes import Notes

SETTLE_NS = 500_000_000
"""What a lag rests on, a stall that ended with it, is known to the drain by then."""
_WAITING_MAX = 256


class TraceDesk:
    """Takes what the traces of probes see. Any thread; nothing is raised."""

    def __init__(
        self,
        scene: Callable[[], str | None],
        listeners: FrameListeners,
        failed: Callable[[Exception], object],
        note_sums: Callable[[Notes], object],
        begins: Callable[[], object],
    ) -> None:
        """As Tracing; `note_sums` has the sums of input and idle work noted."""
        self.begins = begins
        """Called with the first frame, and after pauses."""
        self.scene = scene
        """Where the program says that it is, on the calling thread."""
        self.listening = listeners.registered
        self.shown = listeners.tell
        """Called with a frame that was shown, where there are listeners."""
        self.failed = failed
        self.wake: Callable[[], None] | None = None
        """Makes the drain look; None: no engine runs that has one."""
        self.notes: Notes | None = None
        """Where a keeper reads the reports; None: they wait for the drain."""
        self.waiting: deque[Raw] = deque(maxlen=_WAITING_MAX)
        self.has_news = False
        self._note_sums = note_sums

    @property
    def is_taken(self) -> bool:
        """Whether an engine runs, which will have the reports."""
        return self.wake is not None or self.notes is not None

    def slice_over(self, over: SceneSlice) -> None:
        """Six seconds of frames are over."""
        self._take(over, is_issue=over.slice.figures.is_janky)

    def lagged(self, lag: RawInputLag | RawIdleLag) -> None:
        """An event was handled too late, or idle work took too long."""
        self._take(lag, is_issue=True)

    def counted(self) -> None:
        """Many events were handled: their figures are worth noting."""
        if self.notes is not None:
            self._note_sums(self.notes)

    def ring(self) -> None:
        """Makes the drain look."""
        wake = self.wake
        if wake is not None:
            wake()

    def forget(self) -> None:
        """In a forked child."""
        self.wake = self.notes = None
        self.waiting = deque(maxlen=_WAITING_MAX)
        self.has_news = False

    def _take(self, raw: Raw, *, is_issue: bool) -> None:
        """The drain looks for good slices, too: they are in the figures."""
        notes = self.notes
        if notes is not None and self._note(notes, raw, is_issue=is_issue):
            return
        self.has_news = True
        if is_issue:
            self.waiting.append(raw)
        self.ring()

    def _note(self, notes: Notes, raw: Raw, *, is_issue: bool) -> bool:
        """False: it waits for the drain, which takes over just now."""
        try:
            if is_issue:
                self._note_sums(notes)
            notes.note(raw, is_issue=is_issue)
        except ours_of(OSError):
            if self.notes is notes:
                raise
            return False
        return True


class TracerLives(Protocol):
    """The lives of a process's tracers."""

    @property
    def off(self) -> Container[str]:
        """Names of those that were stopped, and are to stay so."""

    @property
    def heard(self) -> TracerHeard | None:
        """Hears of each step."""

    def add(self, life: TracerLife, /) -> None:
        """It has been made."""


_NO_LIVES = SimpleNamespace(off=(), heard=None, add=lambda life: None)  # noqa: ARG005 - nobody wants to know


class Tracing:
    """See protocols.Tracers and protocols.Traces. Nothing is raised."""

    def __init__(
        self,
        *,
        scene: Callable[[], str | None],
        listeners: FrameListeners,
        failed: Callable[[str, Exception], object],
        monotonic_ns: Callable[[], int],
        frames_begin: Callable[[], object],
        lives: TracerLives = _NO_LIVES,
    ) -> None:
        """`scene`: what loopcanary.scene() says on the calling thread. `failed` gets what fails.
        `frames_begin` is called with the first frame, and after pauses. `lives` has those of tracers."""
        self._scene = scene
        self._listeners = listeners
        self._tell_failure = failed
        self._monotonic_ns = monotonic_ns
        self._judging: Judging | None = None
        self._clock: Clock | None = None
        self._noted = 0
        """Issues that were noted for a keeper before this process judged."""
        self._desk = TraceDesk(scene, listeners, partial(failed, "tracers"), self._note_sums, frames_begin)
        self.input_elsewhere: Callable[[], Sequence[InputFigures]] = tuple
        """Figures of input that is timed without a tracer."""
        self._desks: TracerDesks | None = None
        self._lives = lives
        self._tracers: dict[str, ProbeTracer] = {}
        self._life_of: dict[str, TracerLife] = {}
        self._events_told = 0

    @property
    def desks(self) -> TracerDesks:
        """The desks of plugged-in tracers; most programs have none."""
        if self._desks is None:
            from loopcanary.tracers.desk import TracerDesks

            here = lambda: (thread_name(), self._scene())  # noqa: E731
            refused = lambda name, error: self._tell_failure(f"issue of tracer {name}", error)  # noqa: E731
            self._desks = TracerDesks(
                here, self._desk.ring, self._monotonic_ns, notes=lambda: self._desk.notes, refused=refused
            )
        return self._desks

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
            registered = REGISTRY.find(TRACERS, name) or built_in
            if not self._make(registered) and registered is not built_in:
                self._make(built_in)
        return self._tracers[name]

    def _make(self, registered: Registration) -> bool:
        """False: the program's own, in the place of ours, has failed."""
        name = registered.name
        tracer: ProbeTracer | None = self._call(f"tracer {name}", _made, registered)
        if tracer is None:
            return False
        steps = {
            TracerStep.INIT: lambda: tracer.init(self._desk),
            TracerStep.START: tracer.start,
            TracerStep.STOP: tracer.stop,
            TracerStep.DESTROY: tracer.destroy,
        }
        life = TracerLife(name, steps, call=self._call, heard=self._lives.heard)
        life.step(TracerStep.INIT)
        if self._desk.is_taken:
            self._start_one(life)
        if life.has_failed:
            return False
        self._tracers = {**self._tracers, name: tracer}
        self._life_of = {**self._life_of, name: life}
        self._lives.add(life)
        return True

    def _start_one(self, life: TracerLife) -> None:
        if life.name not in self._lives.off:
            life.step(TracerStep.START)

    def _call(self, part: str, function: Callable[..., Any], /, *args: Any, keep: bool = False) -> Any:
        """See life.Call. A failure of ours is told, and nothing is switched off."""
        del keep
        try:
            return function(*args)
        except ours() as error:  # the program's own, in the place of ours
            self._tell_failure(part, error)
            return None

    def _note_sums(self, notes: Notes) -> None:
        events, idle = (self._tracers.get(name) for name in ("input", "idle"))
        if events is not None or idle is not None:
            clock = self._known_clock()
            notes.sums(*(() if one is None else one.figures(clock) for one in (events, idle)))

    def _known_clock(self) -> Clock:
        if self._clock is None:
            from loopcanary.model import Clock

            self._clock = Clock(monotonic_ns=self._monotonic_ns(), wall_ns=time.time_ns())
        return self._clock

    # ---- protocols.Traces: the engine -----------------------------------------------------------

    def run(self, wake: Callable[[], None]) -> None:
        self._forget_another()
        notes, self._desk.notes = self._desk.notes, None
        self._noted = 0 if notes is None else notes.give_up()
        self._desk.wake = wake
        self._start()

    def begin(self, session: Session, clock: Clock) -> None:
        if self._judging is None:
            from loopcanary.tracers.judging import Judging

            self._clock = clock
            self._judging = Judging(session, clock, self._noted)

    def keep(self, notes: Notes) -> None:
        self._forget_another()
        self._start()
        self._desk.notes = notes
        for raw in list(self._desk.waiting):
            notes.note(raw, is_issue=True)
        self._desk.waiting.clear()

    def _forget_another(self) -> None:
        """Traces stay with their probes from one engine to the next; what they hold is the earlier one's."""
        if self._judging is not None:
            self._desk.waiting.clear()
        self._judging = self._clock = None

    def _start(self) -> None:
        self._listeners.renew()
        for life in self._life_of.values():
            self._start_one(life)

    def end(self) -> None:
        self._desk.wake = None
        for life in self._life_of.values():
            life.step(TracerStep.STOP)
        if self._desk.notes is not None:
            self._note_sums(self._desk.notes)
        self._listeners.end()

    def end_notes(self) -> int:
        """Does `end` and `close` where a keeper reads the notes. Returns how many of the notes become
        issues."""
        notes = self._desk.notes
        self.end()
        self.close()
        self._desk.notes = None
        return 0 if notes is None else notes.issues

    def close(self) -> TraceFigures:
        figures = self.figures()
        for life in self._life_of.values():
            life.step(TracerStep.DESTROY)
        return figures

    def forget(self) -> None:
        """In a forked child."""
        self._judging = self._clock = None
        if self._desks is not None:
            self._desks.forget()
        self._desk.forget()
        self._tracers, self._life_of = {}, {}
        self._events_told = 0
        self._listeners.renew()

    def take(self, now_ns: int, stalls: Iterable[Stall], *, is_last: bool) -> Sequence[LagIssue]:
        """Issues that are ripe."""
        if self._judging is None:  # of a forked child
            return ()
        ripe: list[Raw] = []
        while self._desk.waiting and (is_last or self._desk.waiting[0].ended_ns + SETTLE_NS <= now_ns):
            ripe.append(self._desk.waiting.popleft())
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
        before_ns = None if is_last else now_ns - SETTLE_NS
        for desk, told in () if self._desks is None else self._desks.take(before_ns, now_ns):
            try:
                found.append(judging.complete(told, list(stalls)))
                desk.count("reported")
            except ours() as error:  # a third party's object
                desk.refuse(error)
        return found

    def patience_s(self, now_ns: int) -> float | None:
        """When the next one is ripe."""
        told_ns = None if self._desks is None else self._desks.next_ns()
        ripe = [] if told_ns is None else [told_ns]
        with suppress(IndexError):
            ripe.append(self._desk.waiting[0].ended_ns)
        return max(0.0, (min(ripe) + SETTLE_NS - now_ns) / 1_000_000_000) if ripe else None

    def news(self) -> TraceFigures | None:
        """The figures, where a slice, a lag or input has come to them."""
        events = sum(tracer.events for tracer in self._tracers.values())
        events += sum(figures.events for figures in self.input_elsewhere())
        if not self._desk.has_news and events == self._events_told:
            return None
        self._desk.has_news, self._events_told = False, events
        return self.figures()

    def figures(self) -> TraceFigures:
        from loopcanary.model.figures import TraceFigures

        if self._clock is None and not self._desk.is_taken:
            return TraceFigures()
        clock = self._known_clock()
        found = {name: tracer.figures(clock) for name, tracer in self._tracers.items()}
        return TraceFigures(**{**found, "input": (*found.get("input", ()), *self.input_elsewhere())})


def _made(registered: Registration) -> ProbeTracer:
    tracer: ProbeTracer = registered.load()()
    return tracer
