"""Windows that take no input or paint nothing: the line that did it."""

from __future__ import annotations

from collections.abc import Iterator

from loopcanary.document.makers import part, prose, said
from loopcanary.document.parts import Block, Items
from loopcanary.document.verdict import where
from loopcanary.model import WeightedStack
from loopcanary.model.issues.windows import BlockedWindow
from loopcanary.report.stacks import stack_frames
from loopcanary.words.windows import of_window


def why(issue: BlockedWindow) -> Iterator[Block]:
    """The line. There is no cause beside it."""
    yield from where(issue.culprit, issue.cause)
    yield Items(tuple(said(prose(words)) for words in of_window(issue)))


def parts(issue: BlockedWindow) -> tuple[Block, ...]:
    """How the program came to that line."""
    stack = WeightedStack(weight_ns=0, frames=issue.switched_on)
    return part("switched on, and not off, here", [stack_frames(stack)]) if issue.switched_on else ()
