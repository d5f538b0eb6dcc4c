"""A process seen from outside, as a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from loopcanary.document.makers import NOTHING, dim, line, name, place_of, said, strong
from loopcanary.document.parts import (
    Block,
    Document,
    Fact,
    Facts,
    Frames,
    Indented,
    Paragraph,
    Piece,
    Pieces,
    SourceLine,
    Tone,
)
from loopcanary.model import Frame
from loopcanary.model.outside import ProcessSight, ThreadSight
from loopcanary.model.units import format_duration
from loopcanary.report.dump.frames import Again, rows
from loopcanary.report.dump.words import (
    deadlocks,
    doing_words,
    is_late,
    lane_words,
    stack_words,
    thread_words,
    verdicts,
)
from loopcanary.words.text import count_of, library_path, printable

_ROWS_MAX = 40
_OWN_NAME = "loopcanary"
"""What threads of ours are called: native/module/quiet_thread.c, native/core/watchdog/watchdog.c."""


def dump_document(process: ProcessSight, *, everything: bool) -> Document:
    """What matters most first, then thread by thread. `everything`: all frames and threads."""
    return Document(tuple(_blocks(process, everything)))


def _blocks(process: ProcessSight, everything: bool) -> Iterator[Block]:
    yield _head(process)
    alarms = {"deadlock", "hangs"}
    yield Facts(
        tuple(
            Fact(heading, said(Piece(sentence, Tone.ALARM if heading in alarms else Tone.PLAIN)))
            for heading, sentence in verdicts(process)
        )
    )
    threads = {thread.tid: thread for thread in process.threads}
    for thread in process.threads:
        if everything or not _is_aside(thread):
            yield NOTHING
            yield from _thread(thread, threads, process, everything)
    if not everything and (others := _others(process)):
        yield from (NOTHING, line(dim(others)))
    for note in process.notes:
        yield from (NOTHING, line(Piece(note, Tone.WARN)))


def _head(process: ProcessSight) -> Paragraph:
    found = [f"CPython {process.python}"]
    if process.age_ns is not None:
        found.append(f"up {format_duration(process.age_ns)}")
    watched = "not watched by loopcanary" if process.session is None else f"run {printable(process.session)}"
    what = printable(process.command or process.executable, 60)
    return line(strong(f"process {process.pid}"), f"  {what}  ", dim(", ".join([*found, watched])))


def _thread(
    thread: ThreadSight, threads: Mapping[int, ThreadSight], process: ProcessSight, everything: bool
) -> Iterator[Block]:
    in_trouble = is_late(thread.lane) or any(thread.tid in circle for circle in deadlocks(process.threads))
    doing = Piece(doing_words(thread, threads), Tone.WARN if in_trouble else Tone.NUMBER)
    number = dim(f"  interpreter {thread.interpreter}" if thread.interpreter else "")
    yield line(strong(thread_words(thread)), "  ", doing, number)
    yield Indented(tuple(_inside(thread, process, everything)))


def _inside(thread: ThreadSight, process: ProcessSight, everything: bool) -> Iterator[Block]:
    if thread.lane is not None:
        yield line(Piece(lane_words(thread.lane), Tone.WARN if is_late(thread.lane) else Tone.DIM))
    if (words := stack_words(thread)) is not None:
        yield line(dim(words))
    if thread.stack is None:
        return
    if thread.stack.inner_cut:
        yield line(dim("... inner frames, which moved while they were read"))
    yield Frames(tuple(_frames(thread.stack.frames, process, everything)))
    if thread.stack.truncated:
        yield line(dim("... more outer frames than are read"))


def _frames(
    frames: Sequence[Frame], process: ProcessSight, everything: bool
) -> Iterator[Pieces | SourceLine]:
    listed: Sequence[Frame | Again] = frames if everything else rows(frames)
    most = len(listed) if everything else _ROWS_MAX
    shown_source = False
    for row in listed[:most]:
        if isinstance(row, Again):
            yield said(dim(f"... {_again_words(row)}"))
            continue
        yield _frame(row)
        source = process.sources.get((row.file, row.line))
        if source and not shown_source and not is_library(row):
            shown_source = True
            yield _source(row, source)
    if len(listed) > most:
        yield said(dim(f"... and {count_of(len(listed) - most, 'more line')} (--all shows them)"))


def _again_words(row: Again) -> str:
    if row.period == 1:
        return f"the same function, {count_of(row.times, 'more time')}"
    return f"these {row.period} functions, {count_of(row.times, 'more time')}"


def is_library(frame: Frame) -> bool:
    """Whether the frame's file is the standard library's or an installed package's."""
    return frame.file.startswith("<frozen") or library_path(frame.file) != frame.file


def _frame(frame: Frame) -> Pieces:
    if is_library(frame):
        place = place_of(frame.file, frame.line, is_own=False, shown=library_path(frame.file))
        return said(place, Piece(f" in {name(frame.qualname).text}", Tone.DIM))
    return said(place_of(frame.file, frame.line), " in ", name(frame.qualname))


def _source(frame: Frame, line: str) -> SourceLine:
    """The line that it is in, and the call in it."""
    one_line = frame.end_line in (0, frame.line) and frame.column > 0
    bare = line.lstrip()
    left = len(line.encode()) - len(bare.encode())  # columns are bytes
    columns = (frame.column - left, frame.end_column - left) if one_line else (0, 0)
    return SourceLine(bare.rstrip(), *columns)


def _others(process: ProcessSight) -> str:
    aside = [thread for thread in process.threads if _is_aside(thread)]
    own = sum(thread.name == _OWN_NAME for thread in aside)
    others = [thread for thread in aside if thread.name != _OWN_NAME]
    found = [f"{count_of(own, 'thread')} of loopcanary's"] if own else []
    if others:
        names = ", ".join(dict.fromkeys(printable(thread.name, 20) for thread in others if thread.name))
        named = f" ({names[:60]})" if names else ""
        found.append(f"{count_of(len(others), 'thread')} without Python{named}")
    return f"and {' and '.join(found)}; --all shows them" if found else ""


def _is_aside(thread: ThreadSight) -> bool:
    """Whether the program's author did not start it to run Python."""
    return thread.interpreter is None or thread.name == _OWN_NAME
