"""What pages ask of other parts, brought by the assembly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from loopcanary.assembly.explanations import delays, longer, source_reader, why_grouped
from loopcanary.assembly.tracing.asking import TracersSeen, tracers_of
from loopcanary.model import Session, SessionEnd, TracerStatus
from loopcanary.model.figures.tracers import TracerStep
from loopcanary.model.outside import Unseen
from loopcanary.ui.tools import Tools

_PATIENCE_S = 5.0


def page_tools() -> Tools:
    return Tools(
        read_source=source_reader(),
        why_grouped=why_grouped,
        delays=delays,
        longer=longer,
        tracers=_tracers,
        switch=_switch,
        doctor=_doctor,
    )


def _tracers(session: Session) -> Sequence[TracerStatus] | None:
    found = _asked(session, {}) if session.end is SessionEnd.RUNNING and session.pid else None
    return found.tracers if isinstance(found, TracersSeen) else None


def _switch(session: Session, step: TracerStep, name: str) -> str | None:
    found = _asked(session, {step: [name]})
    return found.refused.get(name) if isinstance(found, TracersSeen) else found.why


def _asked(session: Session, wanted: Mapping[TracerStep, Sequence[str]]) -> TracersSeen | Unseen:
    return tracers_of(session.pid, wanted, _PATIENCE_S, session.id)


def _doctor() -> Iterator[tuple[str, str, str]]:
    from loopcanary.assembly.doctor import doctor_facts  # most servers never show that page

    return doctor_facts()
