"""One issue of any kind, with all its facts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from loopcanary.document.makers import NOTHING, dim, facts, line, name, number, part, said, strong
from loopcanary.document.parts import Block, Facts, Heading, Indented, Piece, Pieces
from loopcanary.document.stacks import stack_frames, stack_parts
from loopcanary.document.surroundings import process_words
from loopcanary.document.times import moment
from loopcanary.document.verdict import advice
from loopcanary.model import Issue, Session, SessionEnd, Stall
from loopcanary.model.units import format_duration
from loopcanary.protocols.kinds import kind_of
from loopcanary.report.model import Details, Report
from loopcanary.words.text import printable
from loopcanary.words.waiting import thread_by_name

_STACKS_MAX = 8


def issue_blocks(issue: Issue, session: Session | None, details: Details | None = None) -> tuple[Block, ...]:
    """A headline, and everything else below it. `session` is the issue's own, if it is known."""
    heading = Heading(said(kind_of(issue).lead(issue), "  ", strong(printable(issue.title, 300))))
    return heading, Indented(issue_body(issue, session, details))


def issue_body(
    issue: Issue, session: Session | None, details: Details | None = None, *, stacks_max: int = 100
) -> tuple[Block, ...]:
    """Verdict, circumstances, what its kind adds, the stalls in it, stacks."""
    kind = kind_of(issue)
    inner = details.stalls if details is not None and issue.stalls else {}
    return (
        *kind.why(issue),
        facts(("try", advice(issue.advice))),
        NOTHING,
        circumstances(issue, session, details),
        *kind.parts(issue),
        *part("stalls in that time", [block for one in issue.stalls for block in _stall(one, inner)]),
        # What the issue itself has kept: for when its stalls are gone.
        *(() if inner else stack_parts(issue.stacks, stacks_max)),
        *kind.after(issue),
    )


def circumstances(issue: Issue, session: Session | None, details: Details | None = None) -> Facts:
    """The facts that every issue has, and its kind's figures, which replace a fact of the same label."""
    is_early, over_wall_ns = kind_of(issue).is_found_early, over_at(issue, session)
    what = "found after" if is_early else "lasted"
    lasted = f", {what} {format_duration(issue.duration_ns)}" if issue.duration_ns else ""
    if is_early and over_wall_ns is not None:
        lasted += f", its process ended after {format_duration(over_wall_ns - issue.began_wall_ns)}"
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
    rows = (*before.rows, *kind_of(issue).figures(issue).rows, *after.rows)
    return Facts(tuple({row.label: row for row in rows}.values()))


def over_at(issue: Issue, session: Session | None) -> int | None:
    """When it was over, in wall ns. What is found while it goes on ends with its process, unless something
    ended it before that nobody looked for. None: the process runs, or is not known."""
    found_wall_ns = issue.began_wall_ns + issue.duration_ns
    if not kind_of(issue).is_found_early:
        return found_wall_ns
    is_over = session is not None and session.end is not SessionEnd.RUNNING and session.ended_wall_ns
    return max(is_over, found_wall_ns) if is_over else None


def grouped(parts: Iterable[str]) -> Pieces:
    """What a fingerprint is made of: `by kind jank, scene boss`."""
    found: list[Piece | str] = []
    for one in parts:
        label, _, value = one.partition("=")
        found += [", " if found else "by ", f"{label} ", name(value, 200)]
    return said(*found)


def _stall(stall_id: str, kept: Mapping[str, Stall]) -> Iterator[Block]:
    """A stall in the issue's time, with the stacks that are kept."""
    stall = kept.get(stall_id)
    if stall is None:
        yield line("stall ", name(stall_id), dim("  no longer kept"))
        return
    length = number(format_duration(stall.duration_ns))
    ran = said(dim("  in "), name(stall.callback)) if stall.callback else ""
    yield line("stall ", name(stall.id), "  ", length, f"  {stall.cause.value}", ran)
    for stack in stall.stacks[:_STACKS_MAX]:
        held = line(dim(f"stack that held {format_duration(stack.weight_ns)}"))
        yield Indented((held, Indented((stack_frames(stack),))))


def session_of(report: Report, issue: Issue) -> Session | None:
    return next((session for session in report.sessions if session.id == issue.session), None)
