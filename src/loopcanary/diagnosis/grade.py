"""How far the samples carry a verdict."""

from __future__ import annotations

from collections.abc import Sequence

from loopcanary.model import Cause, Grade

_STRONG_SAMPLES = 8
_STRONG_COVERAGE = 0.7
_STRONG_HEAVIEST = 0.34
_WEAK_COVERAGE = 0.3
_WEAK_HEAVIEST = 0.9


def make_grade(seen_ns: Sequence[int], coverage: float, cause: Cause, *, sampled: bool) -> Grade:
    """Strong: eight samples and more, over 70 % of the stall, none of which carries a third. Weak: one
    sample carries all, or most of the stall was not seen. `seen_ns`: the time each sample with a stack stands
    for; `coverage`: their share; `sampled`: there are samples, with a stack or without.

    Without any sample, a cause that is known rests on records of the thread itself: fair. What a thread did
    when it crashed is seen by one sample.
    """
    if cause is Cause.CRASH and seen_ns:
        return Grade.STRONG
    if not seen_ns:
        return Grade.WEAK if sampled or cause is Cause.UNKNOWN else Grade.FAIR
    total = sum(seen_ns)
    heaviest = max(seen_ns) / total if total > 0 else 1.0 / len(seen_ns)
    if len(seen_ns) == 1 or heaviest >= _WEAK_HEAVIEST or coverage < _WEAK_COVERAGE:
        return Grade.WEAK
    many = len(seen_ns) >= _STRONG_SAMPLES
    if many and coverage >= _STRONG_COVERAGE and heaviest <= _STRONG_HEAVIEST:
        return Grade.STRONG
    return Grade.FAIR
