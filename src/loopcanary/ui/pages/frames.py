"""Frames, input and idle work: drop levels by scene, and their course."""

from __future__ import annotations

from collections.abc import Sequence

from loopcanary.late_dataclass import dataclass
from loopcanary.model import (
    IdleFigures,
    InputFigures,
    IssueKind,
    Jank,
    LateFrame,
    SceneFrames,
    Session,
    Stall,
)
from loopcanary.model.search import IssueQuery, of_type
from loopcanary.protocols.stores import IssueStore
from loopcanary.words.frames import input_of

_SESSIONS = 50
_ISSUES = 200
_WORST = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFrames:
    session: Session
    scenes: tuple[SceneFrames, ...]
    input: tuple[InputFigures, ...]
    idle: tuple[IdleFigures, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstFrame:
    scene: str | None
    frame: LateFrame
    stall: Stall | None
    """The longest stored stall in the frame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FramesPage:
    sessions: tuple[SessionFrames, ...]
    worst: tuple[WorstFrame, ...]


def frames_page(source: IssueStore) -> FramesPage:
    """The frames of the newest sessions that have any."""
    sessions = [
        SessionFrames(
            session=session,
            scenes=session.traces.frames,
            input=tuple(input_of(session)),
            idle=session.traces.idle,
        )
        for session in source.sessions(IssueQuery(), _SESSIONS)
    ]
    found = source.issues(IssueQuery(kind=IssueKind.JANK), _ISSUES)
    janks = [issue for issue in found if isinstance(issue, Jank)]
    late = [(jank.scene, frame) for jank in janks for frame in jank.worst]
    late.sort(key=lambda one: -one[1].duration_ns)
    return FramesPage(
        sessions=tuple(one for one in sessions if one.scenes or one.input or one.idle),
        worst=tuple(
            WorstFrame(scene=scene, frame=frame, stall=_longest(source, frame.stalls))
            for scene, frame in late[:_WORST]
        ),
    )


def _longest(source: IssueStore, stalls: Sequence[str]) -> Stall | None:
    found = of_type(Stall, map(source.issue, stalls))
    return max(found, key=lambda stall: stall.duration_ns, default=None)
