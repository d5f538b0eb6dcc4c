"""What kinds have in common whose issues are judged from the stalls in them: frames, input, idle work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, TypeVar

from loopcanary.model import Stall
from loopcanary.model.issues.facts import IssueFacts
from loopcanary.protocols.kinds import Kind, fingerprint_of, meanwhile_words

_I = TypeVar("_I", bound="IssueFacts")
NO_STALL = "no stall was seen on its thread meanwhile: no piece of work was as long as the threshold"


class LagKind(Kind[_I]):
    """Their bug is the one of the stall that held most of the time; without a stall, the place."""

    list_words = "frames, input, idle work"
    is_judged = True
    place: ClassVar[str]
    """The field that says where it was seen: a scene, an event, an idle handler."""

    def fingerprint(self, issue: _I, main: Stall | None = None) -> str:
        of_place = issue.loop, getattr(issue, self.place) or ""
        return fingerprint_of(issue.kind.value, of_place if main is None else (main.fingerprint,))

    def grouped(self, issue: _I, stalls: Sequence[Stall]) -> tuple[str, ...]:
        kind, place = issue.kind.value, getattr(issue, self.place)
        for stall in stalls:
            if self.fingerprint(issue, stall) == issue.fingerprint:
                return (f"kind={kind}", f"stall={stall.fingerprint}")
        if self.fingerprint(issue) == issue.fingerprint:
            return (f"kind={kind}", f"loop={issue.loop}", *((f"{self.place}={place}",) if place else ()))
        return ()


def place_words(lag: IssueFacts) -> str:
    """`: load (app.py:12)`; empty: no stall was in it that has a line."""
    culprit = lag.culprit
    if culprit is None:
        return ""
    return f": {culprit.qualname} ({culprit.file.rpartition('/')[2]}:{culprit.line})"


def words_of_stalls(lag: IssueFacts) -> str:
    """Whether there was a stall in it, and what comes from it."""
    if not lag.stalls:
        return NO_STALL
    return f"{meanwhile_words(lag)}; cause and place are those of the stall that took most of it"
