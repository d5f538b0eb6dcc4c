"""What the culprit was doing: the call as written, and the function that was reached."""

from __future__ import annotations

from operator import itemgetter

from loopcanary.diagnosis.code.call_sites import CallSites, callee_of
from loopcanary.diagnosis.culprit.suspect import Suspect
from loopcanary.model import Blocker, Cause

STEADY_SHARE = 0.6
"""A call or function speaks for the culprit from this share of its time. Below, the time was spread over
many, and the heaviest would change from run to run."""


def find_blocker(suspect: Suspect, sites: CallSites, cause: Cause) -> Blocker | None:
    """The call and the innermost function; None where neither is known or none was steady.

    Where Python code computes, a call counts if Python code was mostly seen below it: the call or expression
    that a loop happens to be at is not its work.
    """
    call = _steady_call(suspect, sites)
    if cause is Cause.CPU and call is not None and (callee_of(call) is None or not _reaches_python(suspect)):
        call = None
    function = _steady_function(suspect)
    if call is None and function is None:
        return None
    return Blocker(call=call, function=function)


def _reaches_python(suspect: Suspect) -> bool:
    return 2 * sum(weight for _, below, weight in suspect.hits if below) >= suspect.weight_ns


def _steady_call(suspect: Suspect, sites: CallSites) -> str | None:
    """The text at the culprit's line, if calls of that name hold most of its time. A text that is no
    call counts where the frame did not move from it: `a @ b`, `del tree`, `import numpy`."""
    chosen = sites.of(suspect.view)
    if chosen.text is None:
        return None
    name = chosen.callee or chosen.text
    spare = suspect.weight_ns * (1.0 - STEADY_SHARE)
    for view, below, weight in sorted(suspect.hits, key=itemgetter(2), reverse=True):
        site = sites.of(view)
        if (site.callee or site.text) != name or (chosen.callee is None and below != suspect.below):
            spare -= weight
            if spare < 0:
                return None
    return chosen.text


def _steady_function(suspect: Suspect) -> str | None:
    """Qualified name of the innermost frame under the culprit, if one function held most of its time; None
    where C was called directly, nothing at all, or many functions in turn."""
    held: dict[str | None, int] = {}
    for _, below, weight in suspect.hits:
        innermost = below[0].shown.qualname if below else None
        held[innermost] = held.get(innermost, 0) + weight
    best = max(held, key=lambda name: held[name])
    return best if held[best] >= STEADY_SHARE * suspect.weight_ns else None
