"""What tracers know, as the figures of reports."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from loopcanary.model.figures.frames import FrameSlice, SceneFrames
from loopcanary.model.figures.lags import IdleFigures, InputFigures
from loopcanary.model.figures.traces import TraceFigures

if TYPE_CHECKING:
    from loopcanary.model import Clock
    from loopcanary.tracers.frames import FrameTracer, SceneReading
    from loopcanary.tracers.idle import IdleTracer
    from loopcanary.tracers.input import InputTracer


def figures_of(
    frames: Iterable[FrameTracer], inputs: Iterable[InputTracer], idles: Iterable[IdleTracer], clock: Clock
) -> TraceFigures:
    """All figures, those with most frames, events and time first."""
    scenes = [_scene(tracer, reading, clock) for tracer in frames for reading in tracer.read()]
    return TraceFigures(
        frames=tuple(sorted(scenes, key=lambda scene: -scene.figures.frame_ns)),
        input=tuple(_input(tracer) for tracer in inputs),
        idle=tuple(figure for tracer in idles for figure in _idle(tracer)),
    )


def _scene(tracer: FrameTracer, reading: SceneReading, clock: Clock) -> SceneFrames:
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


def _input(tracer: InputTracer) -> InputFigures:
    reading = tracer.read()
    return InputFigures(
        thread=tracer.thread,
        loop=tracer.loop,
        events=reading.events,
        p50_ns=reading.p50_ns,
        p98_ns=reading.p98_ns,
        worst_ns=reading.worst_ns,
        worst=reading.worst,
        queued_ns=reading.queued_ns,
        lag_ns=reading.lag_ns,
    )


def _idle(tracer: IdleTracer) -> list[IdleFigures]:
    return [
        IdleFigures(
            thread=tracer.thread,
            loop=tracer.loop,
            name=reading.name,
            runs=reading.runs,
            total_ns=reading.total_ns,
            longest_ns=reading.longest_ns,
            spun_ns=reading.spun_ns,
        )
        for reading in tracer.read()
    ]
