"""A process seen from outside, for people at a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from loopcanary.model.units import format_duration
from loopcanary.report.as_text import page_of, show
from loopcanary.report.dump_frames import Again, rows
from loopcanary.report.dump_words import (
    deadlocks,
    doing_words,
    is_late,
    lane_words,
    stack_words,
    thread_words,
    verdicts,
)
from loopcanary.report.folding import library_path
from loopcanary.report.text_pieces import INDENT, link, name
from loopcanary.words.text import count_of, printable, underlined

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import Console

    from loopcanary.model import Frame
    from loopcanary.model.outside import ProcessSight, ThreadSight
    from loopcanary.report.text_pieces import Page

_ROWS_MAX = 40
_LABEL = 9
_OWN_NAME = "loopcanary"
"""What threads of ours are called: native/module/quiet_thread.c, native/core/watchdog.c."""


def show_dump(process: ProcessSight, console: Console, *, everything: bool = False) -> None:
    """The process. `everything`: all frames, and threads without Python."""
    show(console, dump_lines(process, page_of(console), everything=everything))


def dump_lines(process: ProcessSight, page: Page, *, everything: bool) -> Iterator[Text]:
    """What matters most first, then thread by thread."""
    yield from _head(process)
    yield from _verdicts(process)
    threads = {thread.tid: thread for thread in process.threads}
    for thread in process.threads:
        if everything or not _is_aside(thread):
            yield Text()
            yield from _thread(thread, threads, process, page, everything)
    yield from _others(process, everything)
    for note in process.notes:
        yield Text(f"\n{printable(note)}", "yellow")


def _head(process: ProcessSight) -> Iterator[Text]:
    facts = [f"CPython {process.python}"]
    if process.age_ns is not None:
        facts.append(f"up {format_duration(process.age_ns)}")
    facts.append(
        "not watched by loopcanary" if process.session is None else f"session {printable(process.session)}"
    )
    what = printable(process.command or process.executable, 60)
    yield Text.assemble((f"process {process.pid}", "bold"), f"  {what}  ", (", ".join(facts), "dim"))


def _verdicts(process: ProcessSight) -> Iterator[Text]:
    styles = {"deadlock": "bold red", "hangs": "bold red"}
    for heading, sentence in verdicts(process):
        yield Text.assemble((f"{heading:<{_LABEL}}", styles.get(heading, "bold")), sentence)


def _thread(
    thread: ThreadSight,
    threads: Mapping[int, ThreadSight],
    process: ProcessSight,
    page: Page,
    everything: bool,
) -> Iterator[Text]:
    in_trouble = is_late(thread.lane) or any(thread.tid in circle for circle in deadlocks(process.threads))
    doing = doing_words(thread, threads)
    yield Text.assemble(
        (thread_words(thread), "bold"), "  ", (doing, "red" if in_trouble else "yellow"), _number(thread)
    )
    if thread.lane is not None:
        yield Text(f"{INDENT}{lane_words(thread.lane)}", "red" if is_late(thread.lane) else "dim")
    if (words := stack_words(thread)) is not None:
        yield Text(INDENT + words, "dim")
    if thread.stack is None:
        return
    if thread.stack.inner_cut:
        yield Text(f"{INDENT}... inner frames, which moved while they were read", "dim")
    yield from _frames(thread.stack.frames, process, page, everything)
    if thread.stack.truncated:
        yield Text(f"{INDENT}... more outer frames than are read", "dim")


def _number(thread: ThreadSight) -> Text:
    return Text(f"  interpreter {thread.interpreter}" if thread.interpreter else "", "dim")


def _frames(frames: Sequence[Frame], process: ProcessSight, page: Page, everything: bool) -> Iterator[Text]:
    listed: Sequence[Frame | Again] = frames if everything else rows(frames)
    most = len(listed) if everything else _ROWS_MAX
    shown_source = False
    for row in listed[:most]:
        if isinstance(row, Again):
            yield Text(f"{INDENT}... {_again_words(row)}", "dim")
            continue
        yield _frame(row, page)
        source = process.sources.get((row.file, row.line))
        if source and not shown_source and not is_library(row):
            shown_source = True
            yield from _source(row, source, page)
    if len(listed) > most:
        yield Text(f"{INDENT}... and {count_of(len(listed) - most, 'more line')} (--all shows them)", "dim")


def _again_words(row: Again) -> str:
    if row.period == 1:
        return f"the same function, {count_of(row.times, 'more time')}"
    return f"these {row.period} functions, {count_of(row.times, 'more time')}"


def is_library(frame: Frame) -> bool:
    """Whether the frame's file is the standard library's or an installed package's."""
    return frame.file.startswith("<frozen") or library_path(frame.file) != frame.file


def _frame(frame: Frame, page: Page) -> Text:
    if is_library(frame):
        where = link(frame.file, frame.line, page, "dim", shown=library_path(frame.file))
        return Text.assemble(INDENT, where, (f" in {name(frame.qualname)}", "dim"))
    return Text.assemble(INDENT, link(frame.file, frame.line, page), f" in {name(frame.qualname)}")


def _source(frame: Frame, line: str, page: Page) -> Iterator[Text]:
    """The line that it is in, and the call in it."""
    one_line = frame.end_line in (0, frame.line) and frame.column > 0
    bare = line.lstrip()
    left = len(line.encode()) - len(bare.encode())  # columns are bytes
    column, end_column = (frame.column - left, frame.end_column - left) if one_line else (0, 0)
    source, marks = underlined(bare.rstrip(), column, end_column, page.width - len(INDENT) - 4)
    yield Text(f"{INDENT}    {source}")
    if marks:
        yield Text(f"{INDENT}    {marks}", "yellow")


def _others(process: ProcessSight, everything: bool) -> Iterator[Text]:
    if everything:
        return
    aside = [thread for thread in process.threads if _is_aside(thread)]
    own = sum(thread.name == _OWN_NAME for thread in aside)
    others = [thread for thread in aside if thread.name != _OWN_NAME]
    told = [f"{count_of(own, 'thread')} of loopcanary's"] if own else []
    if others:
        names = ", ".join(dict.fromkeys(printable(thread.name, 20) for thread in others if thread.name))
        named = f" ({names[:60]})" if names else ""
        told.append(f"{count_of(len(others), 'thread')} without Python{named}")
    if told:
        yield Text(f"\nand {' and '.join(told)}; --all shows them", "dim")


def _is_aside(thread: ThreadSight) -> bool:
    """Whether the program's author did not start it to run Python."""
    return thread.interpreter is None or thread.name == _OWN_NAME
