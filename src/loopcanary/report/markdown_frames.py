"""Frames, input, idle work, and the issues they made, as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopcanary.model.units import format_duration
from loopcanary.report.frame_words import (
    fps_words,
    idle_words,
    input_words,
    issues_title,
    scene_name,
    traced,
)
from loopcanary.report.markdown_text import code, escaped
from loopcanary.report.times import moment
from loopcanary.words.text import count_of, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loopcanary.model import SceneFrames, Session
    from loopcanary.model.search import IssueGroup

_SCENES_MAX = 30
_ISSUES_MAX = 20
_IDLE_MAX = 10
_HEAD = (
    "scene",
    "fps",
    "frames",
    "time",
    "dropped",
    "late ms/s",
    "over 700 ms",
    "worst",
    "best",
    "normal",
    "middle",
    "high",
    "frozen",
)


def issue_section(groups: Sequence[IssueGroup], places: int) -> Iterator[str]:
    """Issues that are no stalls: a line a bug, most time first. `places`: how many bugs there are."""
    if not groups:
        return
    yield f"### {issues_title(groups)}"
    yield ""
    for number, group in enumerate(groups[:_ISSUES_MAX], start=1):
        worst, count = group.worst, group.count
        times = f" ({count} times, {format_duration(group.total_ns)} in all)" if count > 1 else ""
        title = escaped(printable(worst.title, 200))
        seen = f"{moment(worst.began_wall_ns)}, {code(group.fingerprint)}, {code(worst.id)}"
        yield f"{number}. **{worst.kind.value}**: {title}{times}, {seen}"
    left_out = places - len(groups[:_ISSUES_MAX])
    if left_out > 0:
        yield ""
        yield f"And {count_of(left_out, 'more place')}."
    yield ""


def trace_section(sessions: Sequence[Session]) -> Iterator[str]:
    """A row a scene, newest session first; then input and idle work."""
    found = traced(sessions)
    scenes = [(session, scene) for session in found for scene in session.traces.frames]
    if scenes:
        yield "### Frames"
        yield ""
        yield f"| {' | '.join(_HEAD)} |"
        yield f"|---|---{'|---:' * (len(_HEAD) - 2)}|"
        for session, scene in scenes[:_SCENES_MAX]:
            yield f"| {' | '.join(_cells(session, scene))} |"
        if len(scenes) > _SCENES_MAX:
            yield ""
            yield f"And {count_of(len(scenes) - _SCENES_MAX, 'more scene')}."
        yield ""
    lines = list(_lines(found))
    if lines:
        yield "### Input and idle work"
        yield ""
        yield from lines
        yield ""


def _lines(found: Sequence[Session]) -> Iterator[str]:
    for session in found:
        for figures in session.traces.input:
            if figures.events:
                where = code(f"{session.name} {session.pid}: {figures.thread}, {figures.loop}")
                yield f"- input, {where}, {escaped(input_words(figures))}"
        for work in session.traces.idle[:_IDLE_MAX]:
            yield f"- idle, {escaped(idle_words(work))}"


def _cells(session: Session, scene: SceneFrames) -> Iterator[str]:
    figures = scene.figures
    yield code(f"{session.name} {session.pid}: {scene_name(scene.scene)}").replace("|", "\\|")
    yield fps_words(figures)
    yield f"{figures.frames:,}"
    yield format_duration(figures.frame_ns)
    yield f"{figures.dropped:,}"
    yield f"{figures.hitch_ms_per_s:.1f}"
    yield f"{figures.frozen_share:.2%}"
    yield format_duration(figures.worst_ns)
    for frames in figures.drop_level:
        yield f"{frames:,}"
