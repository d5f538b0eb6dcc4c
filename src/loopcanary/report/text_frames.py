"""Frames, input, idle work, and the issues they made, as lines of text."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rich.text import Text

from loopcanary.model.units import format_duration
from loopcanary.report.frame_words import (
    fps_chart,
    fps_words,
    frozen_words,
    idle_words,
    input_words,
    issues_title,
    level_words,
    scene_name,
    thread_words,
    traced,
)
from loopcanary.report.text_pieces import INDENT, Page, labelled, name
from loopcanary.report.times import age
from loopcanary.words.text import count_of, display_width, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loopcanary.model import SceneFrames, Session
    from loopcanary.model.search import IssueGroup
    from loopcanary.report.model import Report

_SESSIONS_MAX = 6
_SCENES_MAX = 12
_IDLE_MAX = 6
_ISSUES_MAX = 10
_SCENE_WIDTH = 20
_TITLE_MAX = 200
_HEAD = f"{'#':>2} {'total':>7} {'count':>6} {'median':>7} {'max':>7}  {'kind':<7} {'last':>6}  "
_HEAD += f"{'cause':<10} bug"
_BUG_AT = 62
_BUG_LEAST = 18
"""The beginning of a fingerprint, where there is no room for all of it: `show` takes that, too."""


def issues(report: Report, page: Page) -> Iterator[Text]:
    """Issues that are no stalls: one bug after the other, most time first."""
    groups = report.issue_groups[:_ISSUES_MAX]
    if not groups:
        return
    yield Text(issues_title(groups), "bold")
    yield Text(_HEAD, "dim")
    for number, group in enumerate(groups, start=1):
        yield _row(number, group, report.generated_wall_ns, page)
        yield from _facts(group, page)
    left_out = report.issue_places - len(groups)
    if left_out > 0:
        yield Text(f"{INDENT}and {count_of(left_out, 'more place')}", "dim")
    yield Text(f"{INDENT}loopcanary show BUG tells all about one", "dim")
    yield Text()


def _row(number: int, group: IssueGroup, now_wall_ns: int, page: Page) -> Text:
    worst = group.worst
    return Text.assemble(
        (f"{number:>2} ", "dim"),
        (f"{format_duration(group.total_ns):>7}", "bold yellow"),
        f" {group.count:>6,} {format_duration(group.p50_ns):>7} {format_duration(worst.duration_ns):>7}  ",
        f"{worst.kind.value.removeprefix('slow-'):<7} {age(group.last_wall_ns, now_wall_ns):>6}  ",
        (f"{worst.cause.value:<10} ", "bold"),
        (printable(group.fingerprint, 40)[: max(page.width - _BUG_AT, _BUG_LEAST)], "dim"),
    )


def _facts(group: IssueGroup, page: Page) -> Iterator[Text]:
    worst = group.worst
    yield from _wrapped("", printable(worst.title, _TITLE_MAX), page)
    which = "the longest is " if group.count > 1 else "its id is "
    yield Text(f"{INDENT}{which}{printable(worst.id, 60)}", "dim")
    if worst.advice and not worst.stalls:  # else the stalls' own entries have it
        yield from _wrapped("try  ", printable(worst.advice, 300), page)


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
    fps = fps_words(figures)
    counts = f"{count_of(figures.frames, 'frame')} in {format_duration(figures.frame_ns)}"
    words = f"{fps}, {counts}, {late}, worst {format_duration(figures.worst_ns)}"
    narrower = replace(page, width=page.width - len(INDENT))
    for number, line in enumerate(labelled(f"{label:<{_SCENE_WIDTH}} ", words, narrower)):
        if number == 0 and figures.is_janky:
            line.stylize("red", _SCENE_WIDTH + 1, _SCENE_WIDTH + 1 + len(fps))
        yield line
    more = "; ".join(part for part in (level_words(figures), frozen_words(figures)) if part)
    for line in labelled("", more, narrower):
        line.stylize("dim")
        yield Text.assemble("  ", line)
    if chart := fps_chart(scene.slices, unicode=page.unicode):
        yield Text.assemble("  ", (f"fps, {len(scene.slices)} slices: ", "dim"), chart)
