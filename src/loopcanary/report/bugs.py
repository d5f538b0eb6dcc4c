"""The list of bugs: a row each, most time first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from loopcanary.document.makers import dim, facts, filled, line, name, number, said, sentences, strong
from loopcanary.document.parts import Block, Head, Heading, Indented, Piece, Pieces, Table, TableRow, Tone
from loopcanary.document.times import age
from loopcanary.document.verdict import (
    advice,
    holder_fact,
    holders_of,
    spot,
    spot_held,
    verdict,
    waited_on,
    where,
    where_held,
)
from loopcanary.model import Cause, Issue, IssueKind, Stall
from loopcanary.model.search import IssueGroup
from loopcanary.model.units import format_length
from loopcanary.protocols.kinds import kind_named
from loopcanary.report.bug import seen, sums
from loopcanary.report.figures.gains import gain_words
from loopcanary.report.issue import issue_body, session_of
from loopcanary.report.model import Report
from loopcanary.words.causes import has_cause
from loopcanary.words.text import count_of, printable

_ANYWHERE = "in whatever code had its turn; each stall has its own place"


IN_FULL = 3
"""Bugs that a terminal shows in full."""
_STACKS_MAX = 3
_CALLS_NOTHING = frozenset({Cause.BURST, Cause.GIL, Cause.HOST})
"""Causes with a title that says more than the place."""
_TREND_TONES = {"rising": Tone.ALARM, "falling": Tone.GOOD}
_COLUMNS = (
    *(Head(words, is_number=True) for words in ("#", "total", "count", "median", "max")),
    Head("kind"),
    Head("trend"),
    Head("last", is_number=True),
    Head("cause"),
    Head("bug"),
    Head("where", is_short_form=True),
)


def _is_anywhere(group: IssueGroup) -> bool:
    """Whether the stalls struck any code, so that their store names no place."""
    return group.cause is Cause.HOST and group.count > 1 and group.culprit is None


def bugs_of(
    report: Report, groups: Sequence[IssueGroup], count: int, *, first: int = 1, in_detail: bool = False
) -> Iterator[Block]:
    """These of `count` bugs, numbered from `first` on."""
    rows = [
        _row(first + place, group, report, _below(place, group, report, in_detail=in_detail))
        for place, group in enumerate(groups)
    ]
    yield filled(Table(_COLUMNS, tuple(rows), is_airy=True))
    left_out = count - len(groups)
    if left_out > 0:
        yield Indented((line(dim(f"and {count_of(left_out, 'more bug')} (--limit 0 shows all)")),))


def _row(at: int, group: IssueGroup, report: Report, below: Iterator[Block]) -> TableRow:
    figures = report.figures.get(group.fingerprint)
    trend = figures.trend.direction.value if figures else ""
    is_of_stalls = group.kind is IssueKind.STALL
    cells = (
        said(dim(str(at))),
        said(number(format_length(group.total_ns))),
        said(f"{group.count:,}"),
        said(format_length(group.p50_ns)),
        said(format_length(group.max_ns)),
        said("" if is_of_stalls else kind_named(group.kind).words),
        said(Piece(trend if trend != "too few" else "", _TREND_TONES.get(trend, Tone.DIM))),
        said(age(group.last_wall_ns, report.generated_wall_ns)),
        said(strong(group.cause.value) if has_cause(group) else ""),
        said(Piece(printable(group.fingerprint, 40), Tone.DIM)),
        _place(group),
    )
    title = said(f"{at}. ", printable(group.title, 200)) if is_of_stalls else ()
    return TableRow(cells, title, tuple(below))


def _below(place: int, group: IssueGroup, report: Report, *, in_detail: bool) -> Iterator[Block]:
    """What comes below the row of a bug; `place` counts from 0."""
    if group.kind is not IssueKind.STALL:
        yield from _in_short(group, report.worst.get(group.fingerprint))
    elif in_detail:
        yield from _in_detail(group, report)
    elif place < IN_FULL:
        yield from _facts(group, report)


def _in_short(group: IssueGroup, worst: Issue | None) -> Iterator[Block]:
    yield sentences(printable(group.title, 200))
    which = "the longest is " if group.max_ns else "the latest is "
    yield line(dim(which if group.count > 1 else "its id is "), name(group.worst_id))
    if worst is not None and not worst.stalls:
        # Else the stalls' own entries have it.
        if worst.culprit is not None:
            yield from where(worst.culprit, worst.cause)
        yield facts(("try", advice(worst.advice, 300)))


def _place(group: IssueGroup) -> Pieces:
    if _is_anywhere(group):
        return said(dim(_ANYWHERE))
    if group.holder is not None:
        return spot_held(group.holder, group.cause)
    if group.culprit is None:
        return said(printable(group.title, 100))
    return spot(group.culprit, group.cause)


def _facts(group: IssueGroup, report: Report) -> Iterator[Block]:
    figures, worst = report.figures.get(group.fingerprint), report.worst.get(group.fingerprint)
    stall = worst if isinstance(worst, Stall) else None
    if group.cause in _CALLS_NOTHING or group.blamed is None:
        yield Heading(said(strong(printable(group.title, 300))))
    if _is_anywhere(group):
        yield line(dim(_ANYWHERE))
    elif group.blamed is not None:
        yield from where_held(group.culprit, group.cause, group.holder)
    yield line(verdict(group.cause, stall))
    gain = ", ".join(gain_words(figures.gains)) if figures else ""
    holders = holders_of(stall) if stall else ()
    yield facts(
        ("waited on", waited_on(stall) if stall else None),
        *(holder_fact(one, group.cause, is_placed=group.holder is not None) for one in holders[:1]),
        ("and by", count_of(len(holders) - 1, "more thread") if len(holders) > 1 else None),
        ("gain", gain),
        ("try", advice(group.advice)),
    )


def _in_detail(group: IssueGroup, report: Report) -> Iterator[Block]:
    worst = report.worst.get(group.fingerprint)
    yield sums(group)
    yield seen(group, report.figures.get(group.fingerprint), report.generated_wall_ns)
    if worst is None:
        yield line(verdict(group.cause, None))
        yield facts(("bug", name(group.fingerprint, 300)))
        return
    if _is_anywhere(group):
        yield sentences(dim(f"{_ANYWHERE}. The longest one:"))
    yield from issue_body(worst, session_of(report, worst), stacks_max=_STACKS_MAX)
