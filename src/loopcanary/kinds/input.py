"""Input that was handled late."""

from __future__ import annotations

from collections.abc import Iterator

from loopcanary.document.makers import dim, facts, line, name, number, part, said
from loopcanary.document.parts import Block, Facts, Paragraph
from loopcanary.document.verdict import spot
from loopcanary.kinds.lags import LagKind, place_words, words_of_stalls
from loopcanary.model.issues.lags import Handled, InputLag
from loopcanary.model.units import format_duration
from loopcanary.words.waiting import share_words


class InputKind(LagKind[InputLag]):
    """An event that waited for the loop."""

    issue_class = InputLag
    words = "late input"
    place = "event"

    def title(self, lag: InputLag) -> str:
        """`click was handled after 310 ms: load (app.py:12)`."""
        return f"{lag.event} was handled after {format_duration(lag.duration_ns)}{place_words(lag)}"

    def evidence(self, lag: InputLag) -> Iterator[str]:
        """How long the event waited, and how long its handling took."""
        handling = format_duration(max(0, lag.duration_ns - lag.queued_ns))
        share = share_words(lag.queued_ns / lag.duration_ns if lag.duration_ns else 0.0)
        took, waited = format_duration(lag.duration_ns), format_duration(lag.queued_ns)
        yield f"of {took} the event waited {waited} ({share}) for the loop; handling took {handling}"
        yield words_of_stalls(lag)

    def figures(self, lag: InputLag) -> Facts:
        """The event, and how long it waited."""
        handled = format_duration(max(0, lag.duration_ns - lag.queued_ns))
        return facts(
            ("event", name(lag.event)),
            ("waited", f"{format_duration(lag.queued_ns)}, then handled for {handled}"),
        )

    def parts(self, lag: InputLag) -> tuple[Block, ...]:
        return part("what the thread did before it", [_handled(one, lag) for one in lag.before])


def _handled(one: Handled, lag: InputLag) -> Paragraph:
    at = said(" at ", spot(one.culprit, lag.cause)) if one.culprit is not None else ""
    stall = said(dim("  stall "), name(one.stall)) if one.stall else ""
    return line(number(f"{format_duration(one.duration_ns):>8}"), "  ", name(one.name), at, stall)
