"""Reads for a keeper what a program noted of frames, input and idle work (notes.py). Trusts no byte."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from loopcanary.late_dataclass import dataclass
from loopcanary.model import Clock
from loopcanary.model.figures import (
    FrameFigures,
    FrameSlice,
    IdleFigures,
    InputFigures,
    SceneFrames,
    TraceFigures,
)
from loopcanary.model.trace_cells import CELLS, PART, cells_in
from loopcanary.tracers.desk import Told
from loopcanary.tracers.frames import SLICES_MAX, RawSlice, SceneSlice, SlowFrame, thinned
from loopcanary.tracers.idle import RawIdleLag
from loopcanary.tracers.input import RawHandled, RawInputLag

Note = SceneSlice | RawInputLag | RawIdleLag | InputFigures | IdleFigures | Told | bytes
"""A note; bytes: a part of one."""
_NUMBER_MAX = 1 << 62
_KEYS_MAX = 512
"""Scenes, threads with input, kinds of idle work; a program that notes more lies."""
_LEVELS = 5


def notes_in(content: bytes, after: int) -> list[tuple[int, Note | None]]:
    """Serial and note of those with a higher serial than this, oldest first; None: it makes no sense."""
    cells = dict(cells_in(content, 0))
    return [(serial, _note_of(text, cells)) for serial, text in cells.items() if serial > after]


def _note_of(text: bytes, cells: dict[int, bytes]) -> Note | None:
    if text.startswith(PART):
        return text
    try:
        record = json.loads(text)
        if "parts" in record:
            record = json.loads(b"".join(cells[serial][len(PART) :] for serial in record["parts"][:CELLS]))
        return _MAKERS[record["what"]](record)
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        return None


def _slice(record: dict[str, Any]) -> SceneSlice:
    began, ended, mhz, frames, frame_ns, late, janky, frozen, worst_ns, *levels = _numbers(record["values"])
    if len(levels) != 2 * _LEVELS or not 0 < mhz <= 1_000_000_000 or began > ended:
        raise ValueError("no slice")
    figures = FrameFigures(
        refresh_mhz=mhz,
        frames=frames,
        frame_ns=frame_ns,
        drop_level=tuple(levels[:_LEVELS]),
        drop_sum=tuple(levels[_LEVELS:]),
        late_ns=late,
        janky_ns=janky,
        frozen=frozen,
        worst_ns=worst_ns,
    )
    return SceneSlice(
        thread=_text(record["thread"]),
        loop=_text(record["loop"]),
        scene=_text_or_none(record["scene"]),
        slice=RawSlice(began_ns=began, ended_ns=ended, figures=figures),
        worst=tuple(SlowFrame(*_numbers(frame)) for frame in record["worst"]),
    )


def _input(record: dict[str, Any]) -> RawInputLag:
    arrived, begin, end = _numbers(record["values"])
    return RawInputLag(
        thread=_text(record["thread"]),
        loop=_text(record["loop"]),
        name=_text(record["name"]),
        scene=_text_or_none(record["scene"]),
        arrived_ns=arrived,
        begin_ns=begin,
        end_ns=end,
        before=tuple(_handled(*one) for one in record["before"]),
    )


def _handled(name: Any, *times: Any) -> RawHandled:
    begin, end = _numbers(list(times))
    return RawHandled(name=_text(name), begin_ns=begin, end_ns=end)


def _idle(record: dict[str, Any]) -> RawIdleLag:
    begin, end, runs = _numbers(record["values"])
    return RawIdleLag(
        thread=_text(record["thread"]),
        loop=_text(record["loop"]),
        name=_text(record["name"]),
        scene=_text_or_none(record["scene"]),
        begin_ns=begin,
        end_ns=end,
        runs=runs,
    )


def _told(record: dict[str, Any]) -> Told:
    [told] = _numbers(record["values"])
    return Told(
        issue=record["issue"],
        tracer=_text(record["tracer"]),
        thread=_text(record["thread"]),
        scene=_text_or_none(record["scene"]),
        told_ns=told,
    )


def _input_sum(record: dict[str, Any]) -> InputFigures:
    thread, loop, worst, *numbers = record["values"]
    events, p50, p98, worst_ns, queued, lag, one_of = _numbers(numbers)
    return InputFigures(
        thread=_text(thread),
        loop=_text(loop),
        events=events,
        p50_ns=p50,
        p98_ns=p98,
        worst_ns=worst_ns,
        worst=_text_or_none(worst),
        queued_ns=queued,
        lag_ns=lag,
        one_of=max(1, one_of),
    )


def _idle_sum(record: dict[str, Any]) -> IdleFigures:
    thread, loop, name, *numbers = record["values"]
    runs, total, longest, spun = _numbers(numbers)
    return IdleFigures(
        thread=_text(thread),
        loop=_text(loop),
        name=_text(name),
        runs=runs,
        total_ns=total,
        longest_ns=longest,
        spun_ns=spun,
    )


_MAKERS: dict[str, Callable[[dict[str, Any]], Note]] = {
    "slice": _slice,
    "input": _input,
    "idle": _idle,
    "reported": _told,
    "input sum": _input_sum,
    "idle sum": _idle_sum,
}


def _numbers(values: Any) -> list[int]:
    if not isinstance(values, list) or not all(type(one) is int and 0 <= one < _NUMBER_MAX for one in values):
        raise ValueError("no numbers")
    return values


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def _text_or_none(value: Any) -> str | None:
    return None if value is None else _text(value)


@dataclass(frozen=True, slots=True)
class _SceneKey:
    thread: str
    loop: str
    scene: str | None
    refresh_mhz: int


class NotedFigures:
    """What the notes of one session add up to. A slice that is in it counts once."""

    def __init__(self, known: TraceFigures, clock: Clock) -> None:
        """`known`: what a reader before made of them."""
        self._clock = clock
        self._scenes = {
            _SceneKey(one.thread, one.loop, one.scene, one.figures.refresh_mhz): one for one in known.frames
        }
        self._input = {(one.thread, one.loop): one for one in known.input}
        self._idle = {(one.thread, one.loop, one.name): one for one in known.idle}

    def add(self, note: Note) -> None:
        """One more, newer than those before."""
        if isinstance(note, SceneSlice):
            self._add_slice(note)
        elif isinstance(note, InputFigures):
            if len(self._input) < _KEYS_MAX or (note.thread, note.loop) in self._input:
                self._input[note.thread, note.loop] = note
        elif isinstance(note, IdleFigures):
            key = (note.thread, note.loop, note.name)
            if len(self._idle) < _KEYS_MAX or key in self._idle:
                self._idle[key] = note

    def _add_slice(self, over: SceneSlice) -> None:
        figures = over.slice.figures
        key = _SceneKey(over.thread, over.loop, over.scene, figures.refresh_mhz)
        known = self._scenes.get(key)
        new = FrameSlice(
            began_wall_ns=self._clock.to_wall_ns(over.slice.began_ns),
            ended_wall_ns=self._clock.to_wall_ns(over.slice.ended_ns),
            figures=figures,
        )
        if known is None:
            if len(self._scenes) < _KEYS_MAX:
                self._scenes[key] = SceneFrames(
                    thread=over.thread, loop=over.loop, scene=over.scene, figures=figures, slices=(new,)
                )
        elif not known.slices or known.slices[-1].ended_wall_ns < new.ended_wall_ns:
            slices = _at_most((*known.slices, new))
            self._scenes[key] = replace(known, figures=known.figures + figures, slices=slices)

    def figures(self) -> TraceFigures:
        """All of them, scenes with most time first."""
        return TraceFigures(
            frames=tuple(sorted(self._scenes.values(), key=lambda scene: -scene.figures.frame_ns)),
            input=tuple(self._input.values()),
            idle=tuple(self._idle.values()),
        )


def _at_most(slices: tuple[FrameSlice, ...]) -> tuple[FrameSlice, ...]:
    if len(slices) < SLICES_MAX:
        return slices
    raw = [
        RawSlice(began_ns=one.began_wall_ns, ended_ns=one.ended_wall_ns, figures=one.figures)
        for one in slices
    ]
    return tuple(
        FrameSlice(began_wall_ns=one.began_ns, ended_wall_ns=one.ended_ns, figures=one.figures)
        for one in thinned(raw)
    )
