"""Deadlocks of tasks and locks that were not released: who waits where."""

from __future__ import annotations

from loopcanary.document.makers import facts, name, part
from loopcanary.document.parts import Block, Facts
from loopcanary.model import StackFrame, WeightedStack
from loopcanary.model.issues.locks import Deadlock, LockLeak, TaskWait
from loopcanary.report.stacks import stack_frames
from loopcanary.words.locks import wait_words

_WAITERS_SHOWN = 5


def deadlock_parts(issue: Deadlock) -> tuple[Block, ...]:
    """The stack of each task and thread of the cycle."""
    return tuple(block for wait in issue.cycle for block in _stack(_title(wait), wait.frames))


def leak_figures(issue: LockLeak) -> Facts:
    """The lock and its holder."""
    state = "has ended" if issue.has_ended else "waits for it itself"
    return facts(("lock", name(issue.primitive, 120)), ("acquired by", f"{issue.acquired_by} ({state})"))


def leak_parts(issue: LockLeak) -> tuple[Block, ...]:
    """Where it was acquired, and where the first in line wait."""
    return (
        *_stack("acquired, and not released, here", issue.acquired),
        *(
            block
            for wait in issue.waiters[:_WAITERS_SHOWN]
            for block in _stack(f"task {wait.task} waits here", wait.frames)
        ),
    )


def _title(wait: TaskWait) -> str:
    words = wait_words(wait)
    return words if wait.is_thread else f"task {words}"


def _stack(title: str, frames: tuple[StackFrame, ...]) -> tuple[Block, ...]:
    return part(title, [stack_frames(WeightedStack(weight_ns=0, frames=frames))]) if frames else ()
