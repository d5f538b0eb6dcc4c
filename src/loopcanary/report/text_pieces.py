"""Pieces of a text report: lines of rich text that stay whole where they are longer than the screen.

A wrapped `path:line` cannot be clicked, so lines are never wrapped by the console; what may be long is cut
or wrapped here.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.style import Style
from rich.text import Text

from loopcanary.model import Cause
from loopcanary.model.units import format_duration, format_size
from loopcanary.report.folding import Fold, folded, library_path
from loopcanary.words.causes import cause_words, confidence_word, no_line_words, struck_words
from loopcanary.words.earlier import earlier_rows
from loopcanary.words.text import count_of, file_url, place, printable, underlined
from loopcanary.words.waiting import (
    holder_words,
    scheduler_words,
    second_cause_words,
    share_words,
    target_words,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from loopcanary.model import Culprit, Ledger, StackFrame, Stall, Surroundings, ThreadView, WeightedStack

INDENT = "   "
NAME_MAX = 60
PATH_MAX = 300
_BAR_WIDTH = 20
_SHARE_LEAST = 0.005
_EARLIER_MAX = 12
_UNIT = re.compile(r"(?<=\d) (?=(?:%|(?:[num]?s|m|h|[KMGT]?i?B)\b))")
_NO_BREAK = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Where the report is shown."""

    width: int = 80
    folder: str = ""
    """Paths below it are shown relative to it."""
    unicode: bool = True


def name(text: str) -> str:
    """A name of the watched program, made safe and not too long."""
    return printable(text, NAME_MAX)


def link(file: str, line: int, page: Page, style: str = "cyan", *, shown: str | None = None) -> Text:
    """`path:line`, clickable; `shown`: a shorter name of the path."""
    url = file_url(file, line) if len(file) <= PATH_MAX else None
    return Text(
        printable(place(shown or file, line, page.folder), PATH_MAX),
        Style.parse(style) + Style(link=url or None),
    )


def spot(culprit: Culprit, page: Page) -> Text:
    """Where, in a few words."""
    return Text.assemble(link(culprit.file, culprit.line, page), f" in {name(culprit.function)}")


def where(culprit: Culprit | None, cause: Cause, page: Page) -> Iterator[Text]:
    """The culprit, and its line with the call underlined; of a line that is not to blame, why it is told."""
    if culprit is None:
        yield Text(no_line_words(cause), "dim")
        return
    foreign = Text("" if culprit.in_app else " (not your code)", "dim")
    yield Text.assemble(link(culprit.file, culprit.line, page), f" in {name(culprit.qualname)}", foreign)
    if struck := struck_words(cause):
        yield Text("  " + struck, "dim")
    elif culprit.source:
        width = page.width - len(INDENT) - 2
        source, marks = underlined(culprit.source, culprit.column, culprit.end_column, width)
        yield Text("  " + source)
        if marks:
            yield Text("  " + marks, "yellow")


def verdict(cause: Cause, stall: Stall | None) -> Text:
    """The cause, how sure it is, what it means, and what else there was. `stall`: one that has this cause."""
    sure, more = "", ""
    if stall is not None and stall.cause is cause:
        sure = "" if cause is Cause.UNKNOWN else f" ({confidence_word(stall.confidence)})"
        more = second_cause_words(stall)
    return Text.assemble(
        (cause.value, "bold"), f"{sure}: {cause_words(cause)}", (f"; {more}" if more else "", "bold")
    )


def blocker(stall: Stall) -> Iterator[Text]:
    """What the culprit was doing."""
    if stall.blocker is not None and (stall.blocker.call or stall.blocker.function):
        call = printable(stall.blocker.call or "", NAME_MAX)
        reached = name(stall.blocker.function or "")
        words = f"{call}, which was in {reached}" if call and reached else call or reached
        yield Text.assemble(("call   ", "dim"), words)


def holders(stall: Stall, page: Page, *, most: int = 5) -> Iterator[Text]:
    """The threads that held the GIL or lock."""
    found = stall.holders or ((stall.holder,) if stall.holder is not None else ())
    for holder in found[:most]:
        at = Text.assemble(" at ", spot(holder.culprit, page)) if holder.culprit else Text()
        yield Text.assemble(("held by ", "dim"), holder_words(holder), at)
    if len(found) > most:
        yield Text(f"and by {count_of(len(found) - most, 'more thread')}", "dim")


def waited_on(stall: Stall) -> Iterator[Text]:
    """File, peer or child that it waited for."""
    if stall.waited_on is not None:
        yield Text.assemble(("waited on ", "dim"), target_words(stall.waited_on))


def portions(stall: Stall, page: Page) -> Iterator[Text]:
    """Parts of a mixed stall."""
    for portion in stall.portions:
        call = portion.blocker.call if portion.blocker is not None else None
        what = f"  {printable(call, NAME_MAX)}" if call else ""
        yield Text.assemble(
            (f"{share_words(portion.share):>5} ", "bold"),
            f"{portion.cause.value:<10}  ",
            spot(portion.culprit, page) if portion.culprit else Text(no_line_words(portion.cause), "dim"),
            (what, "dim"),
        )


def earlier(stall: Stall, page: Page) -> Iterator[Text]:
    """What the loop ran in the seconds before, the last of it."""
    if stall.timeline is None or not stall.timeline.earlier:
        return
    for row in earlier_rows(stall.timeline, _EARLIER_MAX, NAME_MAX):
        ago = "" if row.ago_ns is None else f"{format_duration(row.ago_ns)} before"
        words = f"{INDENT if row.is_inner else ''}{row.words}"
        line = f"{ago:>16}  {format_duration(row.length_ns):>8}  {words}"
        yield Text(printable(line, page.width), "dim" if row.ago_ns is None else "")


def contributors(stall: Stall, page: Page, *, most: int = 8) -> Iterator[Text]:
    """The callbacks of a turn, with who scheduled them where that is known."""
    found = stall.contributors
    if not found:
        return
    yield Text(f"{'total':>9} {'count':>7} {'mean':>9} {'longest':>9}  callback", "dim")
    for one in found[:most]:
        mean = format_duration(one.total_ns // one.count) if one.count else "-"
        times = f"{format_duration(one.total_ns):>9} {one.count:>7,} {mean:>9}"
        yield Text(f"{times} {format_duration(one.longest_ns):>9}  {name(one.name)}")
        if words := scheduler_words(one, page.folder):
            yield Text(f"{'':>37}  {words}", "dim")
    if len(found) > most:
        yield Text(f"{'':>9} and {count_of(len(found) - most, 'more callback')}", "dim")


def surroundings_words(around: Surroundings) -> str:
    """Machine, container and process meanwhile."""
    facts: list[tuple[Any, Callable[[Any], str]]] = [
        (around.system_cpu, lambda v: f"machine {share_words(v)} busy"),
        (around.process_cpu, lambda v: f"this process used {v:.2f} cores"),
        (around.throttled_ns or None, lambda v: f"container throttled {format_duration(v)}"),
        (_notable(around.pressure_cpu), lambda v: f"pressure on CPU {share_words(v)}"),
        (_notable(around.pressure_memory), lambda v: f"pressure on memory {share_words(v)}"),
        (_notable(around.pressure_io), lambda v: f"pressure on disks {share_words(v)}"),
        (around.major_faults or None, lambda v: count_of(v, "major fault")),
        (around.voluntary_switches, lambda v: f"gave up its core {count_of(v, 'time')}"),
        (around.involuntary_switches or None, lambda v: f"lost it {count_of(v, 'time')}"),
        (around.memory_available_bytes, lambda v: f"{format_size(v)} of memory free"),
        (around.memory_used_bytes, lambda v: f"{format_size(v)} used by the container"),
    ]
    return ", ".join(word(value) for value, word in facts if value is not None)


def advice(text: str | None, page: Page) -> Iterator[Text]:
    """What would help, wrapped."""
    if text:
        yield from labelled("try  ", printable(text, 1_000), page)


def labelled(label: str, text: str, page: Page) -> Iterator[Text]:
    """A text of several lines beside its label."""
    width = max(page.width - len(INDENT) - len(label), 20)
    # A number is not parted from its unit; textwrap breaks at ASCII spaces only.
    lines = textwrap.wrap(_UNIT.sub(_NO_BREAK, text), width, break_on_hyphens=False)
    for index, line in enumerate(lines):
        words = line.replace(_NO_BREAK, " ")
        yield Text.assemble((label if index == 0 else " " * len(label), "dim"), words)


def ledger(ledger: Ledger, duration_ns: int, page: Page) -> Iterator[Text]:
    """Where the wall time went, as a bar with its words."""
    entries = [
        ("CPU", ledger.on_cpu_ns, "green", "█#"),
        ("GIL", ledger.gil_wait_ns, "red", "▓="),
        ("run queue", ledger.run_queue_ns, "magenta", "▒-"),
        ("blocked", ledger.blocked_ns, "yellow", "░."),
    ]
    known = [(word, ns, style, marks) for word, ns, style, marks in entries if ns is not None]
    if not known or duration_ns <= 0:
        return
    bar, words = Text(), Text()
    left = _BAR_WIDTH
    for word, ns, style, marks in known:
        share = min(max(ns / duration_ns, 0.0), 1.0)
        cells = min(round(share * _BAR_WIDTH), left)
        left -= cells
        bar.append(marks[0 if page.unicode else 1] * cells, style)
        if share >= _SHARE_LEAST:
            gc = _gc_words(ledger, duration_ns) if word == "CPU" else ""
            words.append(f"{', ' if words else ''}{word} {share:.0%}{gc}")
    if ledger.error_ns:
        words.append(f" (each within {format_duration(ledger.error_ns)})", "dim")
    yield Text.assemble(("time ", "dim"), bar, " " * left, "  ", words)


def _gc_words(ledger: Ledger, duration_ns: int) -> str:
    share = (ledger.gc_ns or 0) / duration_ns
    return f" (gc {share:.0%})" if share >= _SHARE_LEAST else ""


def _notable(share: float | None) -> float | None:
    return share if share is not None and share >= _SHARE_LEAST else None


def stack(stack: WeightedStack, page: Page, *, most: int) -> Iterator[Text]:
    """Frames, innermost first, folded to own code; `most`: so many lines at most."""
    rows = folded(stack.frames)
    yield from frame_rows(rows[:most], page)
    if len(rows) > most:
        yield Text(f"  and {count_of(len(rows) - most, 'more line')}", "dim")
    if stack.truncated:
        yield Text("  outer frames were not read", "dim")


def frame_rows(rows: Sequence[StackFrame | Fold], page: Page) -> Iterator[Text]:
    """One line a frame or fold; own code stands out."""
    for row in rows:
        if isinstance(row, Fold):
            yield Text(f"  {count_of(row.count, 'frame')} in {printable(', '.join(row.packages), 50)}", "dim")
        else:
            style = "cyan" if row.in_app else "dim"
            function = Text(f" in {name(row.qualname)}", "" if row.in_app else "dim")
            shown = row.file if row.in_app else library_path(row.file)
            yield Text.assemble("  ", link(row.file, row.line, page, style, shown=shown), function)


def thread(view: ThreadView, page: Page) -> Iterator[Text]:
    """Another thread of the process, as it was when the stall became a hang."""
    notes = ["held the GIL"] if view.holds_gil else []
    notes += ["waited for the GIL"] if view.waits_for_gil else []
    notes += [f"state {name(view.state)}"] if view.state else []
    extra = f" ({', '.join(notes)})" if notes else ""
    yield Text.assemble(("thread ", "dim"), name(view.name or str(view.tid)), (extra, "dim"))
    yield from frame_rows(folded(view.frames), page)
