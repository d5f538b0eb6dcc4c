"""The built-in tracers, as they are registered: each keeps the traces of one kind of evidence, which probes
report what they see, and gives their figures."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:  # what one kind needs is not loaded for another
    from loopcanary.model import Clock
    from loopcanary.model.figures import IdleFigures, InputFigures, SceneFrames
    from loopcanary.tracers.frames import FrameSink, FrameTracer, SceneReading  # noqa: F401 - as text
    from loopcanary.tracers.idle import IdleSink, IdleTracer  # noqa: F401
    from loopcanary.tracers.input import InputTracer, LagSink  # noqa: F401

_TRACES_MAX = 256
_Desk = TypeVar("_Desk")
_Trace = TypeVar("_Trace", bound="_Switched")


class _Switched(Protocol):
    is_off: bool


class _Kept(Generic[_Desk, _Trace]):
    """The life that they have in common: nothing of the program's is patched."""

    def __init__(self) -> None:
        self._traces: dict[object, _Trace] = {}
        self._is_off = True

    def init(self, desk: _Desk) -> None:
        """For the first probe that asks for a trace."""
        self._desk = desk

    def start(self) -> None:
        """The engine runs."""
        self._switch(is_off=False)

    def stop(self) -> None:
        """The engine runs no more, or what they see is not wanted now."""
        self._switch(is_off=True)

    def _switch(self, *, is_off: bool) -> None:
        self._is_off = is_off
        for trace in self._traces.values():
            trace.is_off = is_off

    def destroy(self) -> None:
        """All that they reported was taken."""
        self._traces = {}

    @property
    def events(self) -> int:
        """How many of those there were that the desk does not hear of."""
        return 0

    def _trace(self, key: object, make: Callable[[], _Trace]) -> _Trace:
        trace = self._traces.get(key)
        if trace is None:
            trace = make()
            trace.is_off = self._is_off
            if len(self._traces) < _TRACES_MAX:
                self._traces = {**self._traces, key: trace}
        return trace


class FrameTraces(_Kept["FrameSink", "FrameTracer"]):
    """The tracer `frames`: a trace for each surface."""

    name = "frames"

    def trace(self, loop_kind: str, refresh_hz: float) -> FrameTracer:
        """For one surface of the calling thread."""
        from loopcanary.tracers.frames import FrameTracer

        ident, thread = threading.get_ident(), thread_name()
        for trace in self._traces.values():
            if trace.is_closed and (trace.thread, trace.loop) == (thread, loop_kind):
                trace.open_again(refresh_hz)  # windows come and go: their figures are kept together
                return trace
        return self._trace(
            object(),
            lambda: FrameTracer(
                self._desk, thread=thread, ident=ident, loop=loop_kind, refresh_hz=refresh_hz
            ),
        )

    def stop(self) -> None:
        """The last slices are over."""
        super().stop()
        for trace in self._traces.values():
            trace.finish()

    def figures(self, clock: Clock) -> tuple[SceneFrames, ...]:
        """The figures of all scenes, those with most time first."""
        scenes = [
            _scene(trace, reading, clock) for trace in self._traces.values() for reading in trace.read()
        ]
        return tuple(sorted(scenes, key=lambda scene: -scene.figures.frame_ns))


class InputTraces(_Kept["LagSink", "InputTracer"]):
    """The tracer `input`."""

    name = "input"

    def trace(self, loop_kind: str, limit_ns: int | None, one_of: int) -> InputTracer:
        """For the calling thread."""
        from loopcanary.model.figures import INPUT_LAG_NS
        from loopcanary.tracers.input import InputTracer

        limit = INPUT_LAG_NS if limit_ns is None else limit_ns
        return self._trace(
            (threading.get_ident(), loop_kind),
            lambda: InputTracer(
                self._desk, thread=thread_name(), loop=loop_kind, limit_ns=limit, one_of=one_of
            ),
        )

    @property
    def events(self) -> int:
        """How many were handled."""
        return sum(trace.events for trace in self._traces.values())

    def figures(self, clock: Clock) -> tuple[InputFigures, ...]:  # noqa: ARG002 - as all tracers
        """The figures of each thread."""
        return tuple(trace.read() for trace in self._traces.values())


class IdleTraces(_Kept["IdleSink", "IdleTracer"]):
    """The tracer `idle`."""

    name = "idle"

    def trace(self, loop_kind: str) -> IdleTracer:
        """For the calling thread."""
        from loopcanary.tracers.idle import IdleTracer

        make = lambda: IdleTracer(self._desk, thread=thread_name(), loop=loop_kind)  # noqa: E731
        return self._trace((threading.get_ident(), loop_kind), make)

    def figures(self, clock: Clock) -> tuple[IdleFigures, ...]:  # noqa: ARG002 - as all tracers
        """The figures of each kind of work of each thread."""
        return tuple(figure for trace in self._traces.values() for figure in trace.read())


def thread_name() -> str:
    """The calling thread's name. Asking `threading` for it would make an object that the program sees."""
    thread = threading._active.get(threading.get_ident())  # type: ignore[attr-defined]  # noqa: SLF001
    name = getattr(thread, "name", None)
    return name if isinstance(name, str) else f"thread {threading.get_native_id()}"


def _scene(tracer: FrameTracer, reading: SceneReading, clock: Clock) -> SceneFrames:
    from loopcanary.model.figures import FrameSlice, SceneFrames

    return SceneFrames(
        thread=tracer.thread,
        loop=tracer.loop,
        scene=reading.scene,
        figures=reading.figures,
        slices=tuple(
            FrameSlice(
                began_wall_ns=clock.to_wall_ns(part.began_ns),
                ended_wall_ns=clock.to_wall_ns(part.ended_ns),
                figures=part.figures,
            )
            for part in reading.slices
        ),
    )
