"""The frames of each run, and the speed of its input, idle work and answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from loopcanary.document.makers import dim, line, name, part, said, sentences
from loopcanary.document.parts import Bars, Block, Fact, Facts, Head, Indented, Piece, Table, TableRow, Tone
from loopcanary.model import SceneFrames, Session
from loopcanary.model.units import format_duration
from loopcanary.words.frames import (
    fps_words,
    frozen_words,
    idle_words,
    input_of,
    input_words,
    level_words,
    requests_of,
    scene_name,
    thread_words,
)
from loopcanary.words.text import count_of

_RUNS_MAX = 6
_SCENES_MAX = 12
_IDLE_MAX = 6
_COURSE_LEAST = 4
_HEADS = (
    Head("scene"),
    Head("fps"),
    *(Head(words, is_number=True) for words in ("frames", "time", "dropped", "late ms/s", "worst")),
)


def trace_parts(sessions: Sequence[Session]) -> Iterator[Block]:
    """A part for each run with frames, input or idle work, and one for each that answered requests."""
    traced = [session for session in sessions if not session.traces.is_empty]
    for session in traced[:_RUNS_MAX]:
        who = f"  {name(session.name).text} (pid {session.pid})" if len(sessions) > 1 else ""
        titles = "Frames" if session.traces.frames else "Input", "Requests"
        for title, blocks in zip(titles, (tuple(_traces(session)), tuple(_requests(session))), strict=True):
            if blocks:
                yield from part(said(Piece(title, Tone.STRONG), dim(who)), [Indented(blocks)])


def _requests(session: Session) -> Iterator[Block]:
    if rows := [Fact(one.thread, said(input_words(one))) for one in requests_of(session)]:
        yield Facts(tuple(rows))


def _traces(session: Session) -> Iterator[Block]:
    scenes = session.traces.frames
    if scenes:
        yield Table(_HEADS, tuple(map(_scene, scenes[:_SCENES_MAX])))
    if len(scenes) > _SCENES_MAX:
        yield line(dim(f"and {count_of(len(scenes) - _SCENES_MAX, 'more scene')}"))
    rows = [
        Fact("input", said(f"{thread_words(one.thread, one.loop)}, {input_words(one)}"))
        for one in input_of(session)
    ]
    rows += [Fact("idle", said(idle_words(work))) for work in session.traces.idle[:_IDLE_MAX]]
    if rows:
        yield Facts(tuple(rows))


def _scene(scene: SceneFrames) -> TableRow:
    figures = scene.figures
    cells = (
        said(name(scene_name(scene.scene))),
        said(Piece(fps_words(figures), Tone.WARN if figures.is_janky else Tone.PLAIN)),
        said(f"{figures.frames:,}"),
        said(format_duration(figures.frame_ns)),
        said(f"{figures.dropped:,}"),
        said(f"{figures.hitch_ms_per_s:.1f}"),
        said(format_duration(figures.worst_ns)),
    )
    more = "; ".join(words for words in (level_words(figures), frozen_words(figures)) if words)
    below: list[Block] = [sentences(dim(more))] if more else []
    if len(scene.slices) >= _COURSE_LEAST:
        found = [one.figures.fps / one.figures.refresh_hz for one in scene.slices]
        below.append(Bars(f"fps, {len(found)} slices", tuple(min(max(one, 0.0), 1.0) for one in found)))
    return TableRow(cells, below=tuple(below))
