"""Idle work that took long."""

from __future__ import annotations

from collections.abc import Iterator

from loopcanary.document.makers import facts, name
from loopcanary.document.parts import Facts
from loopcanary.kinds.lags import LagKind, place_words, words_of_stalls
from loopcanary.model.figures import IDLE_LAG_NS, SPIN_NS
from loopcanary.model.issues.lags import IdleLag
from loopcanary.model.units import format_duration

_SLOW_ADVICE = (
    "do idle work in small pieces, each of a few milliseconds, and ask for the next one when it is done"
)
_SPIN_ADVICE = "wait for what is to happen (an event, a timer) instead of asking again and again"


class IdleKind(LagKind[IdleLag]):
    """Work that was to fill the loop's pauses, and held it up."""

    issue_class = IdleLag
    words = "idle work"
    place = "handler"

    def title(self, lag: IdleLag) -> str:
        """`idle work prefetch took 90 ms: load (app.py:12)`."""
        took = format_duration(lag.duration_ns)
        if lag.runs > 1:
            return f"{lag.handler} scheduled itself {lag.runs:,} times in a row: no wait for {took}"
        return f"idle work {lag.handler} took {took}{place_words(lag)}"

    def advice(self, lag: IdleLag) -> str:
        """What idle work is to be like."""
        return _SPIN_ADVICE if lag.runs > 1 else _SLOW_ADVICE

    def evidence(self, lag: IdleLag) -> Iterator[str]:
        """Rounds and their length, or the length of one run, and the limit."""
        took = format_duration(lag.duration_ns)
        if lag.runs > 1:
            each = format_duration(lag.duration_ns // lag.runs)
            yield (
                f"{lag.runs:,} rounds in {took}, {each} each, and the loop never waited between them; "
                f"the limit is {format_duration(SPIN_NS)}"
            )
        else:
            yield f"one call took {took}; the limit is {format_duration(IDLE_LAG_NS)}"
        yield words_of_stalls(lag)

    def figures(self, lag: IdleLag) -> Facts:
        """The handler, and how often it ran."""
        return facts(("handler", name(lag.handler)), ("calls", f"{lag.runs:,}"))
