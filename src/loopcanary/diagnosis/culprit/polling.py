"""A sleep that is much shorter than its stall: a loop polls."""

from __future__ import annotations

import ast

from loopcanary.diagnosis.causes.sleep import SLEEPING_CALLS
from loopcanary.diagnosis.causes.verdict import Verdict
from loopcanary.diagnosis.code.parsing import expression
from loopcanary.diagnosis.code.repetition import is_loop
from loopcanary.diagnosis.culprit.suspect import Suspect
from loopcanary.diagnosis.samples.observation import Observation
from loopcanary.late_dataclass import dataclass
from loopcanary.model import Blocker, Cause

_IN_A_ROW = 4
"""A sleep that fits so often into the time slept was repeated."""


@dataclass(frozen=True, slots=True)
class Polling:
    """A sleep that was repeated."""

    call: str
    count: int
    """About how often."""
    loop_line: int | None
    """Of the loop's header; None: not in the culprit's function."""


def find_polling(
    observation: Observation, verdict: Verdict, suspect: Suspect | None, blocker: Blocker | None
) -> Polling | None:
    """None where the sleep is no constant, or not much shorter than the stall."""
    if verdict.first is None or verdict.cause is not Cause.SLEEP or suspect is None or blocker is None:
        return None
    seconds = _constant_sleep(blocker.call or "")
    count = round(verdict.first.share * observation.duration_ns / (seconds * 1e9)) if seconds else 0
    if blocker.call is None or count < _IN_A_ROW:
        return None
    loops = [line for line, header in observation.sites.blocks(suspect.view) if is_loop(header)]
    return Polling(blocker.call, count, loops[0] if loops else None)


def _constant_sleep(call: str) -> float | None:
    """The seconds of `time.sleep(0.05)`."""
    try:
        found = expression(call)
    except (SyntaxError, ValueError):
        return None
    match found:
        case ast.Call(
            func=ast.Name(name) | ast.Attribute(attr=name), args=[ast.Constant(int() | float() as seconds)]
        ) if name in SLEEPING_CALLS and seconds > 0:
            return seconds
    return None
