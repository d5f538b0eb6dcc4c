"""Traces of frames, input and idle work: protocols of the probes that report them, of the tracers, and of the
engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from loopcanary.model import Clock, LagIssue, Session, Stall, TraceFigures
    from loopcanary.model.tracer_states import TracerState, TracerStep

    TracerHeard = Callable[[str, TracerState], object]
    """Called with a tracer's name and the state that it has come to."""


class FrameTrace(Protocol):
    """Takes the frames of one surface (a window, a screen). All on its thread; nothing is raised.

    `now_ns` and the like: time.monotonic_ns(). A surface calls either `frame_drawn`, and `waited` where it
    knows of the loop's waits, or `frame`.
    """

    def frame_drawn(self, now_ns: int, scene: str | None = None) -> None:
        """A frame was shown. Its time runs from the frame before it, or from the end of a pause.

        Args:
            now_ns: When.
            scene: Such as the window's title; used where the program has set none with loopcanary.scene().
        """

    def frame(self, begin_ns: int, end_ns: int, scene: str | None = None) -> None:
        """A frame was drawn, by a surface that draws on demand and knows nothing of waits. Its time runs from
        the frame before it; from `begin_ns`, if none was shown for 100 ms before.

        Args:
            begin_ns: When it was asked for, if that is known, else when drawing began.
            end_ns: When it was drawn.
            scene: As of `frame_drawn`.
        """

    def waited(self, begin_ns: int, end_ns: int) -> None:
        """The loop had nothing to do. After 100 ms of it drawing has paused: the next frame's time begins
        with `end_ns`. Blocking is not waiting: it counts.

        Args:
            begin_ns: When the loop began to wait.
            end_ns: When it went on.
        """

    def idle(self) -> None:
        """Drawing stops (hidden, minimized, paused): the next frame only starts the clock."""

    def at_refresh_rate(self, hertz: float) -> None:
        """Says how often frames are to be shown. Cheap where it is what it was.

        Args:
            hertz: The screen's refresh rate, or the rate that the program aims at; others are ignored.
        """

    def close(self) -> None:
        """The surface is gone."""


class InputTrace(Protocol):
    """Takes the input events that one thread handles. That thread; nothing is raised."""

    def handled(
        self, name: str, arrived_ns: int, begin_ns: int, end_ns: int, scene: str | None = None
    ) -> None:
        """An event was handled. All times are of time.monotonic_ns().

        Args:
            name: Class of the event and its receiver, never its contents.
            arrived_ns: When it arrived: the lag runs from here.
            begin_ns: When its handler began.
            end_ns: When its handler ended.
            scene: As of `FrameTrace.frame_drawn`.
        """


class IdleTrace(Protocol):
    """Takes the idle work that one thread does. That thread; nothing is raised."""

    def ran(self, name: str, begin_ns: int, end_ns: int, scene: str | None = None) -> None:
        """An idle handler has run.

        Args:
            name: Of the handler.
            begin_ns: When it began, as time.monotonic_ns().
            end_ns: When it ended.
            scene: As of `FrameTrace.frame_drawn`.
        """

    def spun(self, name: str, begin_ns: int, end_ns: int, runs: int, *, are_counted: bool = False) -> None:
        """The loop never waited, as some work asked for itself anew each time. Called again with the same
        begin as that goes on: all of it is one issue, which grows.

        Args:
            name: Of the work.
            begin_ns: When this began, as time.monotonic_ns().
            end_ns: When it ended, or now.
            runs: How often the work ran meanwhile.
            are_counted: Each run was told by `ran`.
        """


class Tracers(Protocol):
    """Gives traces to probes. Any thread, under the GIL; nothing is raised. Where no engine runs, what a
    trace gets goes nowhere."""

    def frames(self, loop_kind: str, refresh_hz: float = 60.0) -> FrameTrace:
        """Makes a trace for one surface of the calling thread.

        Args:
            loop_kind: Of the probe that asks.
            refresh_hz: How often the surface's frames are to be shown, until it says another rate.

        Returns:
            What takes its frames.
        """

    def input(self, loop_kind: str, *, limit_ns: int | None = None, one_of: int = 1) -> InputTrace:
        """Makes a trace for the input events of the calling thread.

        Args:
            loop_kind: Of the probe that asks.
            limit_ns: What takes longer is an issue; None: the usual limit.
            one_of: Each event that the probe reports stands for so many.

        Returns:
            What takes the events.
        """

    def idle(self, loop_kind: str) -> IdleTrace:
        """Makes a trace for the idle work of the calling thread.

        Args:
            loop_kind: Of the probe that asks.

        Returns:
            What takes the idle work.
        """


class ProbeTracer(Protocol):
    """A built-in tracer: probes report to its traces what they see. Registered in `loopcanary.tracers`, as a
    plugins.Tracer is, but made for the first probe that asks for a trace. Nothing is raised."""

    def init(self, desk: Any) -> None:
        """Called once, before `start`. `desk` takes what its traces find."""

    def start(self) -> None:
        """The engine runs; or what was stopped is wanted again."""

    def stop(self) -> None:
        """The engine runs no more, or its evidence is not wanted: what is in the making is reported."""

    def destroy(self) -> None:
        """All that it reported has been taken. Not in a forked child."""

    def trace(self, loop_kind: str, /, *more: Any) -> Any:
        """For the calling thread: a FrameTrace, InputTrace or IdleTrace."""

    @property
    def events(self) -> int:
        """Changes where there are new figures of which the desk has not heard."""

    def figures(self, clock: Clock) -> tuple[Any, ...]:
        """As they are now: what model.TraceFigures has under its name. Any thread."""


class TracerSteps(Protocol):
    """The steps and the state of one tracer. Any thread; nothing is raised."""

    @property
    def name(self) -> str:
        """As it is registered."""

    @property
    def part(self) -> str:
        """Its name at the boundary."""

    @property
    def state(self) -> TracerState:
        """How far it has come."""

    @property
    def has_failed(self) -> bool:
        """It is switched off."""

    @property
    def steps_ns(self) -> int:
        """How long its steps took."""

    def step(self, step: TracerStep, /) -> str | None:
        """Makes the step. Returns None, or why the step was not made."""

    def is_forked(self) -> None:
        """Tells the tracer that it is in a forked child."""


class Traces(Protocol):
    """All traces of the process, for the engine. Drain thread, unless a method says otherwise; nothing is
    raised."""

    def run(self, wake: Callable[[], None]) -> None:
        """The engine runs, and its drain takes the reports; `wake` makes it look. Any thread."""

    def keep(self, notes: Any) -> None:
        """The engine runs, and a keeper reads the reports where they are noted. Any thread."""

    def begin(self, session: Session, clock: Clock) -> None:
        """The drain will call `take` from now on. Idempotent."""

    def end(self) -> None:
        """The engine runs no more; the last slices are over. Any thread."""

    def end_notes(self) -> int:
        """Does `end` and `close` where a keeper reads the notes. Returns how many of the notes become
        issues."""

    def close(self) -> TraceFigures:
        """All reports were taken; the last figures."""

    def forget(self) -> None:
        """In a forked child: forgets what was traced in the parent."""

    def take(self, now_ns: int, stalls: Iterable[Stall], *, is_last: bool) -> Sequence[LagIssue]:
        """Issues since the last call, of which the stalls they rest on can be known by now. `stalls`: what
        the engine has seen lately."""

    def patience_s(self, now_ns: int) -> float | None:
        """Seconds until `take` will have an issue; None: not before `wake` is called."""

    def news(self) -> TraceFigures | None:
        """The figures, where there are new ones that are worth storing."""

    def figures(self) -> TraceFigures:
        """The figures as they are now. Any thread."""


class ImportWait(Protocol):
    """Calls back when a module has been imported."""

    def start(self) -> None:
        """Waits, or calls back now."""

    def cancel(self) -> None:
        """Waits no more."""


class AwaitImport(Protocol):
    """Makes an ImportWait."""

    def __call__(self, names: Sequence[str], after: Callable[[], object], /) -> ImportWait:
        """`after`: called once, on the importing thread, when the first of the modules is there."""
