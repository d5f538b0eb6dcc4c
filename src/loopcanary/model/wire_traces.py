"""Figures of frames, input and idle work as JSON-able dicts and back; see model.wire."""

from __future__ import annotations

from loopcanary.model.figures.frames import LEVELS, FrameFigures, FrameSlice, SceneFrames
from loopcanary.model.figures.lags import IdleFigures, InputFigures
from loopcanary.model.figures.traces import TraceFigures
from loopcanary.model.wire_fields import Fields, Json, WireError, ms, time_to_text

_REFRESH_MAX_MHZ = 1_000_000_000


def traces_to_dict(traces: TraceFigures) -> Json:
    """The lists `frames`, `input` and `idle` of a session."""
    return {
        "frames": [_scene_to_dict(scene) for scene in traces.frames],
        "input": [_input_to_dict(figures) for figures in traces.input],
        "idle": [_idle_to_dict(figures) for figures in traces.idle],
    }


def traces_of(fields: Fields) -> TraceFigures:
    """What `traces_to_dict` added to an object; empty lists where it is an older one. Raises WireError."""
    return TraceFigures(
        frames=fields.many("frames", _scene),
        input=fields.many("input", _input),
        idle=fields.many("idle", _idle),
    )


def traces_from_dict(value: object) -> TraceFigures:
    """What `traces_to_dict` wrote. Raises WireError."""
    return traces_of(Fields(value, "traces"))


def figures_to_dict(figures: FrameFigures) -> Json:
    """Figures of frames, with what follows from them."""
    names = [level.value for level in LEVELS]
    return {
        "frames": figures.frames,
        "frame_ms": ms(figures.frame_ns),
        "refresh_hz": figures.refresh_hz,
        "fps": figures.fps,
        "dropped": figures.dropped,
        "drop_level": dict(zip(names, figures.drop_level, strict=True)),
        "drop_sum": dict(zip(names, figures.drop_sum, strict=True)),
        "late_ms": ms(figures.late_ns),
        "janky_ms": ms(figures.janky_ns),
        "hitch_ms_per_s": figures.hitch_ms_per_s,
        "frozen": figures.frozen,
        "frozen_share": figures.frozen_share,
        "worst_ms": ms(figures.worst_ns),
    }


def figures_of(fields: Fields) -> FrameFigures:
    """What `figures_to_dict` wrote; what follows from other fields is not read. Raises WireError."""
    refresh_mhz = round(fields.number("refresh_hz") * 1_000)
    if not 0 < refresh_mhz <= _REFRESH_MAX_MHZ:
        raise WireError(f"refresh_hz: {refresh_mhz / 1_000} is no refresh rate")
    levels, sums = fields.counts("drop_level"), fields.counts("drop_sum")
    return FrameFigures(
        refresh_mhz=refresh_mhz,
        frames=fields.integer("frames"),
        frame_ns=fields.ns("frame_ms"),
        drop_level=tuple(levels.get(level.value, 0) for level in LEVELS),
        drop_sum=tuple(sums.get(level.value, 0) for level in LEVELS),
        late_ns=fields.ns("late_ms"),
        janky_ns=fields.ns("janky_ms", 0.0),
        frozen=fields.integer("frozen"),
        worst_ns=fields.ns("worst_ms"),
    )


def _scene_to_dict(scene: SceneFrames) -> Json:
    return {
        "thread": scene.thread,
        "loop": scene.loop,
        "scene": scene.scene,
        **figures_to_dict(scene.figures),
        "slices": [
            {
                "began_at": time_to_text(part.began_wall_ns),
                "ended_at": time_to_text(part.ended_wall_ns),
                **figures_to_dict(part.figures),
            }
            for part in scene.slices
        ],
    }


def _slice(fields: Fields) -> FrameSlice:
    return FrameSlice(
        began_wall_ns=fields.time("began_at"),
        ended_wall_ns=fields.time("ended_at"),
        figures=figures_of(fields),
    )


def _scene(fields: Fields) -> SceneFrames:
    return SceneFrames(
        thread=fields.text("thread"),
        loop=fields.text("loop"),
        scene=fields.optional_text("scene"),
        figures=figures_of(fields),
        slices=fields.many("slices", _slice),
    )


def _input_to_dict(figures: InputFigures) -> Json:
    return {
        "thread": figures.thread,
        "loop": figures.loop,
        "events": figures.events,
        "p50_ms": ms(figures.p50_ns),
        "p98_ms": ms(figures.p98_ns),
        "worst_ms": ms(figures.worst_ns),
        "worst": figures.worst,
        "queued_ms": ms(figures.queued_ns),
        "lag_ms": ms(figures.lag_ns),
    }


def _input(fields: Fields) -> InputFigures:
    return InputFigures(
        thread=fields.text("thread"),
        loop=fields.text("loop"),
        events=fields.integer("events"),
        p50_ns=fields.ns("p50_ms"),
        p98_ns=fields.ns("p98_ms"),
        worst_ns=fields.ns("worst_ms"),
        worst=fields.optional_text("worst"),
        queued_ns=fields.ns("queued_ms", 0.0),
        lag_ns=fields.ns("lag_ms", 0.0),
    )


def _idle_to_dict(figures: IdleFigures) -> Json:
    return {
        "thread": figures.thread,
        "loop": figures.loop,
        "name": figures.name,
        "runs": figures.runs,
        "total_ms": ms(figures.total_ns),
        "longest_ms": ms(figures.longest_ns),
        "spun_ms": ms(figures.spun_ns),
    }


def _idle(fields: Fields) -> IdleFigures:
    return IdleFigures(
        thread=fields.text("thread"),
        loop=fields.text("loop"),
        name=fields.text("name"),
        runs=fields.integer("runs"),
        total_ns=fields.ns("total_ms"),
        longest_ns=fields.ns("longest_ms"),
        spun_ns=fields.ns("spun_ms", 0.0),
    )
