"""Frames, input, idle work, and the issues they made, as lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from loopcanary.model.units import format_duration
from loopcanary.model.wording import count_of, display_width, printable
from loopcanary.report.frame_words import (
    fps_chart,
    fps_words,
    frozen_words,
    grouped,
    idle_words,
    input_words,
    level_words,
    scene_name,
    thread_words,
    traced,
)
from loopcanary.report.text_pieces import INDENT, Page, labelled, name
from loopcanary.report.times import moment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loopcanary.model import LagIssue, SceneFrames, Session
    from loopcanary.report.model import Report

_SESSIONS_MAX = 6
_SCENES_MAX = 12
_IDLE_MAX = 6
_ISSUES_MAX = 10
_SCENE_WIDTH = 20
_TITLE_MAX = 200


def issues(report: Report, page: Page) -> Iterator[Text]:
    """Jank, late input, long idle work: one bug after the other."""
    rows = grouped(report.issues)
    if not rows:
        return
    yield Text("Frames, input, idle work", "bold")
    for longest, count, total_ns in rows[:_ISSUES_MAX]:
        yield from _issue(longest, count, total_ns, page)
    if len(rows) > _ISSUES_MAX:
        yield Text(f"{INDENT}and {count_of(len(rows) - _ISSUES_MAX, 'more place')}", "dim")
    yield Text()


def _issue(issue: LagIssue, count: int, total_ns: int, page: Page) -> Iterator[Text]:
    times = f" x{count}, {format_duration(total_ns)}" if count > 1 else ""
    yield Text.assemble(
        INDENT,
        (f"{issue.kind.value:<6}", "yellow"),
        f"{printable(issue.title, _TITLE_MAX)}",
        (f"{times}  {moment(issue.began_wall_ns)}", "dim"),
    )
    if issue.advice and not issue.stalls:  # else the stalls' own entries have it
        for line in labelled("try  ", printable(issue.advice, 300), page):
            yield Text.assemble(INDENT, line)


def traces(known: Sequence[Session], page: Page) -> Iterator[Text]:
    """What each session showed, and how fast its input and idle work were."""
    found = traced(known)
    for session in found[:_SESSIONS_MAX]:
        who = f"  {name(session.name)} (pid {session.pid})" if len(known) > 1 else ""
        yield Text()
        yield Text.assemble(("Frames", "bold") if session.traces.frames else ("Input", "bold"), (who, "dim"))
        for scene in session.traces.frames[:_SCENES_MAX]:
            yield from (Text.assemble(INDENT, line) for line in _scene(scene, page))
        if len(session.traces.frames) > _SCENES_MAX:
            left_out = len(session.traces.frames) - _SCENES_MAX
            yield Text(f"{INDENT}and {count_of(left_out, 'more scene')}", "dim")
        for figures in session.traces.input:
            if figures.events:
                where = thread_words(figures.thread, figures.loop)
                yield from _wrapped("input ", f"{where}, {input_words(figures)}", page)
        for work in session.traces.idle[:_IDLE_MAX]:
            yield from _wrapped("idle  ", idle_words(work), page)


def _wrapped(label: str, words: str, page: Page) -> Iterator[Text]:
    for line in labelled(label, words, page):
        yield Text.assemble(INDENT, line)


def _scene(scene: SceneFrames, page: Page) -> Iterator[Text]:
    figures, label = scene.figures, scene_name(scene.scene)
    if display_width(label) > _SCENE_WIDTH:
        yield Text(label)
        label = ""
    late = f"late {figures.hitch_ms_per_s:.1f} ms/s"
    yield Text.assemble(
        f"{label:<{_SCENE_WIDTH}} ",
        (fps_words(figures), "red" if figures.is_janky else ""),
        f", {count_of(figures.frames, 'frame')} in {format_duration(figures.frame_ns)}, {late}, "
        f"worst {format_duration(figures.worst_ns)}",
    )
    more = "; ".join(part for part in (level_words(figures), frozen_words(figures)) if part)
    for line in labelled("", more, page):
        line.stylize("dim")
        yield Text.assemble("  ", line)
    if chart := fps_chart(scene.slices, unicode=page.unicode):
        yield Text.assemble("  ", (f"fps, {len(scene.slices)} slices: ", "dim"), chart)
