"""Frames, input and idle work: drop levels by scene, and their course."""

from __future__ import annotations

from dataclasses import dataclass

from loopcanary.model import IdleFigures, InputFigures, IssueKind, Jank, SceneFrames, Session
from loopcanary.model.search import IssueQuery
from loopcanary.protocols.stores import IssueStore

_SESSIONS = 50
_ISSUES = 200
_WORST = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFrames:
    """What one process drew and handled."""

    session: Session
    scenes: tuple[SceneFrames, ...]
    input: tuple[InputFigures, ...]
    idle: tuple[IdleFigures, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstFrame:
    """One late frame."""

    jank: Jank
    began_wall_ns: int
    duration_ns: int
    dropped: int
    stall: str | None
    """Id of the first stall in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FramesPage:
    """What the template shows."""

    sessions: tuple[SessionFrames, ...]
    worst: tuple[WorstFrame, ...]


def frames_page(source: IssueStore) -> FramesPage:
    """Of the newest sessions that have any."""
    sessions = [one for one in source.sessions(IssueQuery(), _SESSIONS) if not one.traces.is_empty]
    found = source.issues(IssueQuery(kind=IssueKind.JANK), _ISSUES)
    janks = [issue for issue in found if isinstance(issue, Jank)]
    worst = [
        WorstFrame(
            jank=jank,
            began_wall_ns=frame.began_wall_ns,
            duration_ns=frame.duration_ns,
            dropped=frame.dropped,
            stall=frame.stalls[0] if frame.stalls else None,
        )
        for jank in janks
        for frame in jank.worst
    ]
    return FramesPage(
        sessions=tuple(
            SessionFrames(
                session=session,
                scenes=session.traces.frames,
                input=tuple(one for one in session.traces.input if one.events),
                idle=session.traces.idle,
            )
            for session in sessions
        ),
        worst=tuple(sorted(worst, key=lambda one: -one.duration_ns)[:_WORST]),
    )
