"""What ran, and where, as a Markdown list: what an issue tracker asks for first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopcanary.model import SessionEnd
from loopcanary.model.units import format_duration, format_number, format_size
from loopcanary.report.markdown_text import code
from loopcanary.report.times import moment
from loopcanary.words.text import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loopcanary.model import Session

_SESSIONS_MAX = 5
_ENDS = {SessionEnd.KILLED: "**killed**", SessionEnd.RUNNING: "still running"}


def section(sessions: Sequence[Session]) -> Iterator[str]:
    """A line a session, newest first; nothing without one."""
    if not sessions:
        return
    yield "### Sessions"
    yield ""
    for session in sessions[:_SESSIONS_MAX]:
        yield f"- {', '.join(_facts(session))}"
    if len(sessions) > _SESSIONS_MAX:
        yield f"- and {len(sessions) - _SESSIONS_MAX:,} before"
    yield ""


def _facts(session: Session) -> Iterator[str]:
    name = code(session.name) or "(no name)"
    yield f"{name} {code(session.version)}" if session.version else name
    yield f"{moment(session.started_wall_ns)}{_end(session)}"
    if session.python:
        yield code(session.python)
    if machine := " ".join(filter(None, (session.system, session.machine))):
        yield code(machine)
    if session.cores:
        limit = "" if session.cpu_limit is None else f" limited to {format_number(session.cpu_limit)}"
        yield f"{count_of(session.cores, 'core')}{limit}"
    if session.memory_bytes:
        yield format_size(session.memory_bytes)
    engine = "" if session.engine == "native" else f", engine {code(session.engine)}"
    yield f"threshold {format_duration(session.threshold_ns)}{engine}"


def _end(session: Session) -> str:
    words = _ENDS.get(session.end, "")
    if session.ended_wall_ns is None:
        return f" ({words})" if words else ""
    length = format_duration(max(session.ended_wall_ns - session.started_wall_ns, 0))
    return f" ({words} after {length})" if words else f" ({length})"
