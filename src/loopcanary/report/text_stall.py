"""One stall with everything that is known of it, as lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from loopcanary.model import Grade, StallScope, StallState
from loopcanary.model.units import format_duration
from loopcanary.report import text_pieces as pieces
from loopcanary.report.text_pieces import INDENT, Page, name
from loopcanary.report.times import moment
from loopcanary.words.causes import severity_word
from loopcanary.words.text import count_of, printable
from loopcanary.words.waiting import thread_by_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from loopcanary.model import Session, Stall

SEVERITY_STYLES = {"stall": "yellow", "hang": "red", "ANR": "bold red"}
_LATE_NS = 1_000_000
_ROWS_MAX = 100
_SCOPE_WORDS = {StallScope.CALLBACK: "one callback", StallScope.TURN: "a whole turn"}
_GRADE_WORDS = {
    Grade.STRONG: "strong evidence",
    Grade.FAIR: "fair evidence",
    Grade.WEAK: "weak evidence: few samples, or one carries it all",
}


def stall_lines(stall: Stall, session: Session | None, page: Page) -> Iterator[Text]:
    """Verdict, circumstances, stacks, other threads."""
    word = severity_word(stall.severity)
    yield Text.assemble(
        (f"{word} {format_duration(stall.duration_ns)}", SEVERITY_STYLES[word]),
        "  ",
        (printable(stall.title, page.width - 24), "bold"),
    )
    if stall.state is StallState.KILLED:
        yield Text(f"{INDENT}the process was killed in it", "bold red")
    elif stall.state is StallState.ONGOING:
        yield Text(f"{INDENT}it is still going on", "bold red")
    yield from _indented(_verdict(stall, page))
    yield from _titled("what it consisted of", pieces.portions(stall, page))
    yield from _titled("callbacks of the turn", pieces.contributors(stall, page))
    yield from _titled("shortly before", pieces.earlier(stall, page))
    yield Text()
    yield from _indented(_circumstances(stall, session, page))
    for weighted in stall.stacks:
        held = f"stack that held {format_duration(weighted.weight_ns)}"
        yield from _titled(held, pieces.stack(weighted, page, most=_ROWS_MAX))
    for view in stall.threads:
        yield Text()
        yield from _indented(pieces.thread(view, page))
    yield Text()


def _verdict(stall: Stall, page: Page) -> Iterator[Text]:
    yield from pieces.where(stall.culprit, stall.cause, page)
    yield pieces.verdict(stall.cause, stall)
    for line in stall.evidence:
        yield from pieces.labelled("- ", printable(line, 1_000), page)
    yield from pieces.blocker(stall)
    yield from pieces.waited_on(stall)
    yield from pieces.holders(stall, page)
    yield from pieces.ledger(stall.ledger, stall.duration_ns, page)
    yield from pieces.advice(stall.advice, page)


def _titled(title: str, lines: Iterable[Text]) -> Iterator[Text]:
    listed = list(lines)
    if listed:
        yield Text()
        yield Text.assemble(INDENT, (title, "bold"))
        yield from _indented(listed)


def _indented(lines: Iterable[Text]) -> Iterator[Text]:
    return (Text.assemble(INDENT, line) for line in lines)


def _circumstances(stall: Stall, session: Session | None, page: Page) -> Iterator[Text]:
    samples = count_of(stall.samples, "sample")
    dropped = f", {stall.dropped_samples:,} dropped" if stall.dropped_samples else ""
    seen = f"{samples} over {stall.coverage:.0%} of it, {name(stall.engine)} engine{dropped}"
    late = (
        f"it began {format_duration(stall.queue_ns)} after its time" if stall.queue_ns >= _LATE_NS else None
    )
    facts = [
        ("began", f"{moment(stall.began_wall_ns)}, threshold {format_duration(stall.threshold_ns)}"),
        ("loop", f"{name(stall.loop)} on {thread_by_name(stall.thread)}, {_SCOPE_WORDS[stall.scope]}"),
        ("startup", "before the loop first waited" if stall.startup else None),
        ("callback", name(stall.callback) if stall.callback else None),
        ("task", name(stall.task) if stall.task else None),
        ("scene", name(stall.scene) if stall.scene else None),
        ("late", late),
        ("seen", f"{seen}; {_GRADE_WORDS[stall.grade]}"),
        ("around", pieces.surroundings_words(stall.surroundings) if stall.surroundings else None),
        ("process", _process(stall, session)),
        ("bug", printable(stall.fingerprint)),
        ("id", printable(stall.id)),
    ]
    for label, value in facts:
        if value:
            yield from pieces.labelled(f"{label:<9}", value, page)


def _process(stall: Stall, session: Session | None) -> str:
    if session is None:
        return f"pid {stall.pid}"
    version = f" {name(session.version)}" if session.version else ""
    return f"{name(session.name)}{version}, pid {stall.pid} on {name(session.host)}, {name(session.python)}"
