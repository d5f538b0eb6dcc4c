"""Frames, input, idle work, and the issues they made, as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopcanary.model.units import format_duration
from loopcanary.model.wording import count_of, printable
from loopcanary.report.frame_words import fps_words, grouped, idle_words, input_words, scene_name, traced
from loopcanary.report.markdown_text import code, escaped
from loopcanary.report.times import moment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loopcanary.model import LagIssue, SceneFrames, Session

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


def issue_section(issues: Sequence[LagIssue]) -> Iterator[str]:
    """Jank, late input, long idle work: a line a bug."""
    rows = grouped(issues)
    if not rows:
        return
    yield "### Frames, input, idle work"
    yield ""
    for longest, count, total_ns in rows[:_ISSUES_MAX]:
        times = f" ({count} times, {format_duration(total_ns)} in all)" if count > 1 else ""
        title = escaped(printable(longest.title, 200))
        yield f"- **{longest.kind.value}**: {title}{times}, {moment(longest.began_wall_ns)}"
    if len(rows) > _ISSUES_MAX:
        yield f"- and {count_of(len(rows) - _ISSUES_MAX, 'more place')}"
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
