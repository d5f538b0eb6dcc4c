"""Input that was handled late, and idle work that took long."""

from __future__ import annotations

from loopcanary.document.makers import dim, facts, line, name, number, part, said
from loopcanary.document.parts import Block, Facts, Paragraph
from loopcanary.document.verdict import spot
from loopcanary.model import Handled, IdleLag, InputLag
from loopcanary.model.units import format_duration


def input_figures(lag: InputLag) -> Facts:
    """The event, and how long it waited."""
    handled = format_duration(max(0, lag.duration_ns - lag.queued_ns))
    return facts(
        ("event", name(lag.event)),
        ("waited", f"{format_duration(lag.queued_ns)}, then handled for {handled}"),
    )


def input_parts(lag: InputLag) -> tuple[Block, ...]:
    return part("what the thread did before it", [_handled(one, lag) for one in lag.before])


def _handled(one: Handled, lag: InputLag) -> Paragraph:
    at = said(" at ", spot(one.culprit, lag.cause)) if one.culprit is not None else ""
    stall = said(dim("  stall "), name(one.stall)) if one.stall else ""
    return line(number(f"{format_duration(one.duration_ns):>8}"), "  ", name(one.name), at, stall)


def idle_figures(lag: IdleLag) -> Facts:
    """The handler, and how often it ran."""
    return facts(("handler", name(lag.handler)), ("calls", f"{lag.runs:,}"))
