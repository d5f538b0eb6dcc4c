"""Frames with what is known about their place, each distinct one judged once."""

from __future__ import annotations

from dataclasses import dataclass

from loopcanary.diagnosis.ownership import Owner, Ownership
from loopcanary.diagnosis.plumbing import is_boundary, is_plumbing
from loopcanary.model import Frame, Stack, StackFrame

_COMPREHENSIONS = ("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlacedFrame:
    """A frame, how reports show it, and whose it is. Compared by identity: a FrameTable makes one of
    each kind."""

    frame: Frame
    shown: StackFrame
    owner: Owner
    plumbing: bool
    boundary: bool

    @property
    def function(self) -> tuple[str, str]:
        """Identity of the function: file and qualified name."""
        return (self.shown.file, self.shown.qualname)


Placed = tuple[PlacedFrame, ...]


class FrameTable:
    """Places frames and stacks. Keyed by object identity first, since readers share equal frames; the
    evidence must outlive the table."""

    def __init__(self, ownership: Ownership) -> None:
        self._ownership = ownership
        self._by_id: dict[int, PlacedFrame] = {}
        self._by_value: dict[tuple[str, str, int, int, int, int], PlacedFrame] = {}
        self._shown: dict[tuple[str, str, int], StackFrame] = {}
        self._stacks: dict[int, Placed] = {}

    def place(self, stack: Stack) -> Placed:
        """The stack's frames, innermost first, without those of loopcanary."""
        placed = self._stacks.get(id(stack))
        if placed is None:
            known = self._by_id
            views = [known.get(id(frame)) or self._add(frame) for frame in stack.frames]
            placed = tuple([view for view in views if view.owner is not Owner.OURS])
            self._stacks[id(stack)] = placed
        return placed

    def _add(self, frame: Frame) -> PlacedFrame:
        key = (frame.qualname, frame.file, frame.line, frame.end_line, frame.column, frame.end_column)
        view = self._by_value.get(key)
        if view is None:
            view = self._by_value[key] = self._judge(frame)
        self._by_id[id(frame)] = view
        return view

    def _judge(self, frame: Frame) -> PlacedFrame:
        owner = self._ownership.of(frame.file)
        own = owner is Owner.OWN
        return PlacedFrame(
            frame=frame,
            shown=self._show(frame, in_app=own),
            owner=owner,
            plumbing=not own and is_plumbing(frame.file, frame.function, stdlib=owner is Owner.STDLIB),
            boundary=not own and is_boundary(frame.file, frame.function),
        )

    def _show(self, frame: Frame, *, in_app: bool) -> StackFrame:
        qualname = fold_comprehension(frame.qualname)
        key = (qualname, frame.file, frame.line)
        shown = self._shown.get(key)
        if shown is None:
            shown = self._shown[key] = StackFrame(
                function=qualname.rpartition(".")[2],
                qualname=qualname,
                file=frame.file,
                line=frame.line,
                in_app=in_app,
            )
        return shown


def fold_comprehension(qualname: str) -> str:
    """A comprehension's frame goes by its function's name, as from 3.12 where it has no frame (PEP 709)."""
    while qualname.endswith(_COMPREHENSIONS):
        outer = qualname.rpartition(".")[0]
        qualname = outer.removesuffix(".<locals>") if outer else "<module>"
    return qualname


def work_part(placed: Placed) -> Placed:
    """The frames of the work itself: from the innermost to where the loop called it."""
    for index, view in enumerate(placed):
        if view.boundary:
            return placed[:index]
    return placed
