"""A comparison in words that its text and its Markdown share."""

from __future__ import annotations

from math import isinf

from loopcanary.model.units import format_duration, format_number
from loopcanary.report.diff.comparison import Change, Compared, Comparison, Seen, SideSums
from loopcanary.report.diff.starts import ChangedImport, ComparedStart
from loopcanary.report.figures.rates import Interval
from loopcanary.report.figures.watched import HOUR_NS
from loopcanary.words.text import count_of, printable

_LOAD_DIFFERS = 1.5


def side_words(side: SideSums) -> str:
    """What a side is, how long it was watched, and what it had."""
    watched = f"{count_of(side.sessions, 'run')} watched for {format_duration(round(side.hours * HOUR_NS))}"
    stalled = f"{count_of(side.stalls, 'stall')}, {seconds(side.stalled_s)}"
    load = "" if side.callbacks_per_s is None else f", {format_number(side.callbacks_per_s)} callbacks/s"
    return f"{printable(side.label, 60)}: {watched}{load}; {stalled}"


def verdict_words(comparison: Comparison) -> str:
    """`1 new, 2 worse, 3 gone`."""
    return ", ".join(f"{count:,} {change.value}" for change, count in comparison.counts.items() if count)


def load_note(comparison: Comparison) -> str:
    """That rates per hour mislead where one side had more to do; empty where it had not."""
    first, second = comparison.before.callbacks_per_s, comparison.after.callbacks_per_s
    if not first or not second or max(first, second) < _LOAD_DIFFERS * min(first, second):
        return ""
    return f"Mind the load: B ran {format_number(second / first)} times as many callbacks per second as A."


def seconds(value: float) -> str:
    """Seconds as a duration."""
    return format_duration(round(value * 1_000_000_000)) if value else "0 s"


def stalled_words(one: Compared) -> str:
    """Seconds per hour before and after with their ranges, and their quotient."""
    before, after = _time(one.before, one.before_range), _time(one.after, one.after_range)
    return f"{before} -> {after}{_ratio(one)}"


def count_words(one: Compared) -> str:
    """Stalls per hour before and after."""
    return f"{_rate(one.before)} -> {_rate(one.after)}"


def unsure_words(one: Compared) -> str:
    """What a new or gone group may be as well; empty where there is no doubt."""
    if one.is_sure or one.change not in (Change.NEW, Change.GONE):
        return ""
    side, seen = ("A", one.before) if one.change is Change.NEW else ("B", one.after)
    if not seen.time.hours:
        return f"its program did not run in {side}"
    return f"could be chance: {side} was watched for {format_duration(round(seen.time.hours * HOUR_NS))} only"


def start_times_words(one: ComparedStart) -> str:
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


def start_doubt_words(one: ComparedStart) -> str:
    """Whether chance alone could have made the difference; empty where it hardly could."""
    return "" if one.is_sure else "could be chance"


def import_words(one: ChangedImport) -> str:
    """`pandas 12.0 ms -> 310 ms`; `pandas, new, 310 ms`."""
    name = printable(one.name, 80)
    if not one.before_ns:
        return f"{name}, new, {format_duration(round(one.after_ns))}"
    if not one.after_ns:
        return f"{name}, gone, {format_duration(round(one.before_ns))}"
    return f"{name} {format_duration(round(one.before_ns))} -> {format_duration(round(one.after_ns))}"


def _time(seen: Seen, bounds: Interval) -> str:
    if not seen.count:
        return "none"
    between = "" if isinf(bounds.high) else f" ({seconds(bounds.low)} to {seconds(bounds.high)})"
    return f"{seconds(seen.time.per_hour)}{between}"


def _ratio(one: Compared) -> str:
    low, high = one.ratio.low, one.ratio.high
    if not (one.before.count and one.after.count):
        return ""
    quotient = one.after.time.per_hour / one.before.time.per_hour
    between = (
        f"at least {format_number(low)}" if isinf(high) else f"{format_number(low)} to {format_number(high)}"
    )
    return f", x{format_number(quotient)} ({between})"


def _rate(seen: Seen) -> str:
    return f"{format_number(seen.stalls_per_hour)} ({seen.count:,} in all)" if seen.count else "none"
