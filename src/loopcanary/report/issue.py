"""One issue of any kind, with all its facts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from loopcanary.document.makers import NOTHING, dim, facts, line, name, number, part, prose, said, strong
from loopcanary.document.parts import Block, Facts, Heading, Indented, Items, Piece, Pieces
from loopcanary.document.verdict import advice, verdict, where
from loopcanary.model import Issue, Session, Stall
from loopcanary.model.units import format_duration, format_length
from loopcanary.registry import issue_kind, said_of
from loopcanary.report.model import Details, Report
from loopcanary.report.stacks import stack_frames, stack_parts
from loopcanary.report.surroundings import process_words
from loopcanary.report.times import moment
from loopcanary.words.kinds import kind_words
from loopcanary.words.lags import evidence_of
from loopcanary.words.text import printable
from loopcanary.words.waiting import thread_by_name

_STACKS_MAX = 8


def issue_blocks(issue: Issue, session: Session | None, details: Details | None = None) -> tuple[Block, ...]:
    """Its headline, and everything else below it. `session`: its own, where it is known."""
    length = number(f"{kind_words(issue.kind)} {format_length(issue.duration_ns)}".rstrip())
    heading = Heading(said(said_of(issue, "lead") or length, "  ", strong(printable(issue.title, 300))))
    return heading, Indented(issue_body(issue, session, details))


def issue_body(
    issue: Issue, session: Session | None, details: Details | None = None, *, stacks_max: int = 100
) -> tuple[Block, ...]:
    """Verdict, circumstances, what its kind adds, the stalls in it, stacks."""
    inner = details.stalls if details is not None and issue.stalls else {}
    return (
        *(said_of(issue, "why") or _why(issue)),
        facts(("try", advice(issue.advice))),
        NOTHING,
        circumstances(issue, session, details),
        *(said_of(issue, "parts") or ()),
        *part("stalls in that time", [block for one in issue.stalls for block in _stall(one, inner)]),
        # What the issue itself has kept: for when its stalls are gone.
        *(() if inner else stack_parts(issue.stacks, stacks_max)),
        *(said_of(issue, "after") or ()),
    )


def _why(issue: Issue) -> Iterator[Block]:
    if issue.culprit is not None:
        yield from where(issue.culprit, issue.cause)
    if issue.is_news:  # what stayed within its limit needs no cause
        yield line(verdict(issue.cause, None))
    yield Items(tuple(said(prose(words)) for words in evidence_of(issue)))


def own_blocks(issue: Issue) -> tuple[Block, ...]:
    """What the kind of an issue adds after its facts, unless its page draws that."""
    kind = issue_kind(issue.kind.value)
    return () if kind.page is not None else tuple(said_of(issue, "parts") or ())


def circumstances(issue: Issue, session: Session | None, details: Details | None = None) -> Facts:
    """What every issue has, and its kind's figures; one with the same label takes the other's place."""
    own = said_of(issue, "figures")
    lasted = f", lasted {format_duration(issue.duration_ns)}" if issue.duration_ns else ""
    before = facts(
        ("began", f"{moment(issue.began_wall_ns)}{lasted}"),
        ("loop", said(name(issue.loop), f" on {thread_by_name(issue.thread)}")),
        ("scene", name(issue.scene)),
    )
    after = facts(
        ("process", process_words(issue, session)),
        ("grouped", grouped(details.parts) if details is not None else None),
        ("bug", name(issue.fingerprint, 300)),
        ("id", name(issue.id, 300)),
    )
    rows = (*before.rows, *(own.rows if own is not None else ()), *after.rows)
    return Facts(tuple({row.label: row for row in rows}.values()))


def grouped(parts: Iterable[str]) -> Pieces:
    """What a fingerprint is made of: `by kind jank, scene boss`."""
    found: list[Piece | str] = []
    for one in parts:
        label, _, value = one.partition("=")
        found += [", " if found else "by ", f"{label} ", name(value, 200)]
    return said(*found)


def _stall(stall_id: str, kept: Mapping[str, Stall]) -> Iterator[Block]:
    """A stall in the issue's time, with its stacks as far as they are kept."""
    stall = kept.get(stall_id)
    if stall is None:
        yield line("stall ", name(stall_id), dim("  not kept any more"))
        return
    length = number(format_duration(stall.duration_ns))
    ran = said(dim("  in "), name(stall.callback)) if stall.callback else ""
    yield line("stall ", name(stall.id), "  ", length, f"  {stall.cause.value}", ran)
    for stack in stall.stacks[:_STACKS_MAX]:
        held = line(dim(f"stack that held {format_duration(stack.weight_ns)}"))
        yield Indented((held, Indented((stack_frames(stack),))))


def session_of(report: Report, issue: Issue) -> Session | None:
    """The issue's session, where the report has it."""
    return next((session for session in report.sessions if session.id == issue.session), None)
