"""Reads for a keeper what a program noted of frames, input and idle work (notes.py). Trusts no byte."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

from loopcanary.late_dataclass import dataclass
from loopcanary.model import Clock
from loopcanary.model.figures import (
    FrameSlice,
    IdleFigures,
    InputFigures,
    SceneFrames,
    TraceFigures,
)
from loopcanary.model.trace_cells import CELLS, PART, cells_in
from loopcanary.tracers.desk import Told
from loopcanary.tracers.frames import SLICES_MAX, RawSlice, SceneSlice, thinned
from loopcanary.tracers.idle import RawIdleLag
from loopcanary.tracers.input import RawInputLag

Note = SceneSlice | RawInputLag | RawIdleLag | InputFigures | IdleFigures | Told | bytes
"""A note; bytes: a part of one."""
_NUMBER_MAX = 1 << 62
_KEYS_MAX = 512
"""Scenes, threads with input, kinds of idle work; a program that notes more lies."""
_LEVELS = 5
_KINDS: dict[str, Any] = {
    kind.__name__: kind for kind in (SceneSlice, RawInputLag, RawIdleLag, InputFigures, IdleFigures)
}


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
        if record["what"] == "Told":
            return _told(record)
        return _sound(_of(_KINDS[record["what"]], record["values"]))
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        return None


def _told(record: dict[str, Any]) -> Told:
    thread, scene, told_ns, tracer = record["values"]
    return Told(
        issue=record["issue"],
        tracer=_of(str, tracer),
        thread=_of(str, thread),
        scene=_of(str | None, scene),
        told_ns=_of(int, told_ns),
    )


def _of(hint: Any, value: Any) -> Any:
    """A value of this type, of a list where it has several parts. TypeError, ValueError: there is none."""
    if hint is int:
        if type(value) is not int or not 0 <= value < _NUMBER_MAX:
            raise ValueError("no number")
        return value
    if hint is str or type(None) in get_args(hint):
        if not isinstance(value, str) and (value is not None or hint is str):
            raise TypeError("no text")
        return value
    if not isinstance(value, list):
        raise TypeError("no list")
    if get_origin(hint) is tuple:
        return tuple(_of(get_args(hint)[0], one) for one in value)
    hints = _hints(hint)
    return hint(**{name: _of(hints[name], one) for name, one in zip(hints, value, strict=True)})


@cache
def _hints(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def _sound(note: Note) -> Note:
    """The note. ValueError: its numbers make no sense."""
    if isinstance(note, SceneSlice):
        part, figures = note.slice, note.slice.figures
        is_sound = part.began_ns <= part.ended_ns and 0 < figures.refresh_mhz <= 1_000_000_000
        is_sound &= len(figures.drop_level) == len(figures.drop_sum) == _LEVELS
    else:
        is_sound = not isinstance(note, InputFigures) or note.one_of > 0
    if not is_sound:
        raise ValueError("no note")
    return note


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
