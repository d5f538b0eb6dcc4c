"""A comparison as a document."""

from __future__ import annotations

from collections.abc import Iterator
from math import isinf

from loopcanary.document.makers import NOTHING, dim, facts, line, name, part, said, sentences, strong
from loopcanary.document.parts import Block, Document, Heading, Piece, Pieces, Records, Tone
from loopcanary.document.verdict import spot, spot_held
from loopcanary.model import Cause, StartKind
from loopcanary.model.units import format_duration, format_number
from loopcanary.report.diff.comparison import Change, Compared, Comparison, SideSums
from loopcanary.report.diff.starts import ChangedImport, ComparedStart
from loopcanary.report.figures.rates import LEVEL, Amount, Interval
from loopcanary.report.figures.watched import HOUR_NS
from loopcanary.words.text import count_of, printable
from loopcanary.words.waiting import share_words

_LOAD_DIFFERS = 1.5


def _side_words(side: SideSums) -> str:
    watched = f"{count_of(side.sessions, 'run')} watched for {format_duration(round(side.hours * HOUR_NS))}"
    stalled = f"{count_of(side.stalls, 'stall')}, {_seconds(side.stalled_s)}"
    load = "" if side.callbacks_per_s is None else f", {format_number(side.callbacks_per_s)} callbacks/s"
    return f"{printable(side.label, 60)}: {watched}{load}; {stalled}"


def _load_note(comparison: Comparison) -> str:
    """Warns that rates per hour mislead if one side had more to do; else empty."""
    first, second = comparison.before.callbacks_per_s, comparison.after.callbacks_per_s
    if not first or not second or max(first, second) < _LOAD_DIFFERS * min(first, second):
        return ""
    return f"Note the load: B ran {format_number(second / first)} times as many callbacks per second as A."


def _seconds(value: float) -> str:
    return format_duration(round(value * 1_000_000_000)) if value else "0 s"


def _stalled_words(one: Compared) -> str:
    """Seconds per hour before and after with their ranges, and their quotient."""
    before, after = _time(one.before, one.before_range), _time(one.after, one.after_range)
    return f"{before} -> {after}{_ratio(one)}"


def _unsure_words(one: Compared) -> str:
    """Why a new or gone group is in doubt; empty if it is not."""
    if one.is_sure or one.change not in (Change.NEW, Change.GONE):
        return ""
    side, seen = ("A", one.before) if one.change is Change.NEW else ("B", one.after)
    if not seen.hours:
        return f"its program did not run in {side}"
    return f"could be chance: {side} was watched for {format_duration(round(seen.hours * HOUR_NS))} only"


def _start_times_words(one: ComparedStart) -> str:
    """`512 ms (6 starts) -> 1.20 s (5 starts), x2.3`."""
    sides = " -> ".join(
        f"{format_duration(round(side.median_ns))} ({count_of(side.count, 'start')})"
        for side in (one.before, one.after)
    )
    return (
        f"{sides}, x{format_number(one.after.median_ns / one.before.median_ns)}"
        if one.before.median_ns
        else sides
    )


def _import_words(one: ChangedImport) -> str:
    """`pandas 12.0 ms -> 310 ms`; `pandas, new, 310 ms`."""
    name = printable(one.name, 80)
    if not one.before_ns:
        return f"{name}, new, {format_duration(round(one.after_ns))}"
    if not one.after_ns:
        return f"{name}, gone, {format_duration(round(one.before_ns))}"
    return f"{name} {format_duration(round(one.before_ns))} -> {format_duration(round(one.after_ns))}"


def _time(seen: Amount, bounds: Interval) -> str:
    if not seen.count:
        return "none"
    between = "" if isinf(bounds.high) else f" ({_seconds(bounds.low)} to {_seconds(bounds.high)})"
    return f"{_seconds(seen.per_hour)}{between}"


def _ratio(one: Compared) -> str:
    low, high = one.ratio.low, one.ratio.high
    if not (one.before.count and one.after.count):
        return ""
    quotient = one.after.per_hour / one.before.per_hour
    between = (
        f"at least {format_number(low)}" if isinf(high) else f"{format_number(low)} to {format_number(high)}"
    )
    return f", x{format_number(quotient)} ({between})"


def _rate(seen: Amount) -> str:
    return f"{format_number(seen.count_per_hour)} ({seen.count:,} in all)" if seen.count else "none"


_TONES = {
    Change.NEW: Tone.ALARM,
    Change.WORSE: Tone.WARN,
    Change.BETTER: Tone.GOOD,
    Change.GONE: Tone.GOOD,
    Change.UNCHANGED: Tone.DIM,
}
_COLUMNS = ("", "what", "where", "stalled an hour", "stalls an hour", "note", "bug")
_START_COLUMNS = ("", "program", "took", "imports, their own time", "note")


def diff_document(comparison: Comparison, limit: int = 0) -> Document:
    """Both sides, then the bugs; at most `limit` of them, 0: all."""
    return Document(tuple(_blocks(comparison, limit)))


def _blocks(comparison: Comparison, limit: int) -> Iterator[Block]:
    counts = [f"{count:,} {change.value}" for change, count in comparison.counts.items() if count]
    yield Heading(said(strong(", ".join(counts) or "No stall on either side.")))
    yield facts(("A", _side_words(comparison.before)), ("B", _side_words(comparison.after)))
    if note := _load_note(comparison):
        yield sentences(Piece(note, Tone.WARN))
    yield from _bugs(comparison, limit)
    if comparison.starts:
        yield from part("Starts", [Records(_START_COLUMNS, tuple(map(_start_record, comparison.starts)))])


def _bugs(comparison: Comparison, limit: int) -> Iterator[Block]:
    shown = comparison.groups[: limit or None]
    if not shown:
        return
    yield NOTHING
    yield Records(_COLUMNS, tuple(map(_record, shown)))
    if len(comparison.groups) > len(shown):
        left = count_of(len(comparison.groups) - len(shown), "more bug")
        yield line(dim(f"and {left} (--limit 0 shows all)"))
    yield sentences(
        dim(
            f"Ranges are {share_words(LEVEL)} confidence intervals; bugs are compared by stalled time per "
            "hour."
        )
    )


def _start_record(one: ComparedStart) -> tuple[Pieces, ...]:
    kind = "start" if one.start is StartKind.UNKNOWN else f"{one.start.value} start"
    return (
        said(kind),
        said(strong(printable(one.program, 60))),
        said(_start_times_words(one)),
        said("; ".join(map(_import_words, one.imports))),
        said(Piece("" if one.is_sure else "could be chance", Tone.WARN)),
    )


def _place(one: Compared) -> Pieces:
    if one.holder is not None:
        return spot_held(one.holder, one.cause)
    # Where the GIL was waited for is chance.
    return spot(one.culprit, one.cause) if one.culprit is not None and one.cause is not Cause.GIL else ()


def _record(one: Compared) -> tuple[Pieces, ...]:
    return (
        said(Piece(one.change.value, _TONES[one.change])),
        said(f"{one.cause.value}: ", strong(printable(one.title, 200))),
        _place(one),
        said(_stalled_words(one)),
        said(f"{_rate(one.before)} -> {_rate(one.after)}"),
        said(Piece(_unsure_words(one), Tone.WARN)),
        said(name(one.fingerprint, 300)),
    )
