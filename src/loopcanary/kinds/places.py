"""Stacks that tracers noted: the line to change, and what is the same for the same bug."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from loopcanary.document.makers import part
from loopcanary.document.parts import Part
from loopcanary.document.stacks import stack_frames
from loopcanary.model import Session
from loopcanary.model.stack_frame import StackFrame
from loopcanary.model.stall import Culprit, WeightedStack, culprit_at
from loopcanary.protocols.kinds import function_identity
from loopcanary.source_text import as_written, lines_as_run
from loopcanary.words.text import place, printable


def identity_of(frames: tuple[StackFrame, ...]) -> tuple[str, ...]:
    """The identity of the function to change; empty without frames."""
    frame = _own(frames)
    return () if frame is None else function_identity(frame.qualname, frame.file)


def culprit_of(frames: tuple[StackFrame, ...], session: Session) -> Culprit | None:
    """The line to change, as it is written."""
    frame = _own(frames)
    return None if frame is None else as_written(culprit_at(frame), session.started_wall_ns)


def entered_at(frames: tuple[StackFrame, ...], session: Session) -> StackFrame | None:
    """Where the `async with` begins in whose block the frames are; None: there is none, or more than one, or
    something else may have taken the lock: what a call gives, unless it is a group or a timeout."""
    found = [block for frame in frames for block in _blocks_around(frame, session)]
    return found[0][0] if len(found) == 1 and found[0][0].in_app and not found[0][1] else None


_NO_LOCK = re.compile(
    r"(timeout|timeout_at|TaskGroup|fail_after|move_on_after|open_nursery|create_task_group)\("
)


def _blocks_around(frame: StackFrame, session: Session) -> Iterator[tuple[StackFrame, bool]]:
    """With whether it is something else."""
    if frame.line < 1:
        return
    lines = lines_as_run(frame.file, session.started_wall_ns)[: frame.line]
    depth = len(lines[-1]) if len(lines) == frame.line else 0
    for row, line in reversed(list(enumerate(lines, 1))):
        text = line.lstrip()
        indent = len(line) - len(text)
        if "enter_async_context(" in text:
            yield replace(frame, line=row), True
        if not text or text.startswith("#") or indent >= depth:
            continue
        if row < frame.line and text.startswith("async with ") and not _NO_LOCK.search(text):
            yield replace(frame, line=row), "(" in text
        if text.startswith(("def ", "async def ")):
            return
        depth = indent


def frame_words(frame: StackFrame) -> str:
    """`Bank.pay (bank.py:7)`."""
    return f"{printable(frame.qualname, 100)} ({place(frame.file.rpartition('/')[2], frame.line, '')})"


def made_words(frames: tuple[StackFrame, ...]) -> str:
    """`Account.__init__ (bank.py:3), called in main (bank.py:20)`."""
    shown = [frame for frame in frames if not frame.file.startswith("<")] or [*frames]
    outer = f", called in {frame_words(shown[-1])}," if len(shown) > 1 else ""
    return f"{frame_words(shown[0])}{outer}"


def stack_part(title: str, frames: tuple[StackFrame, ...]) -> tuple[Part, ...]:
    """The stack under a title; nothing without frames."""
    return part(title, [stack_frames(WeightedStack(weight_ns=0, frames=frames))]) if frames else ()


def _own(frames: tuple[StackFrame, ...]) -> StackFrame | None:
    """The innermost of the program's own; else the innermost."""
    return next((frame for frame in frames if frame.in_app), frames[0] if frames else None)
