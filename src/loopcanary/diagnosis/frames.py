"""Frames and stacks with what is known about their place, each distinct one judged once."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from loopcanary.diagnosis.ownership import Owner, Ownership
from loopcanary.diagnosis.plumbing import is_boundary, is_child_control, is_import_machinery, is_plumbing
from loopcanary.model import Frame, Stack, StackFrame

_COMPREHENSIONS = ("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>")


class Role(Enum):
    """Frames that tell what the frames inside them are for, however deep these go."""

    IMPORT = "import"
    CHILD = "child"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlacedFrame:
    """A frame, how reports show it, and whose it is. Compared by identity: a FrameTable makes one of
    each kind."""

    frame: Frame
    shown: StackFrame
    owner: Owner
    function: tuple[str, str]
    """Identity of the function: file and qualified name."""
    plumbing: bool
    role: Role | None


Placed = tuple[PlacedFrame, ...]
"""Innermost first."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlacedStack:
    """A stack without the frames of loopcanary. Compared by identity, as its frames."""

    frames: Placed
    work: Placed
    """The frames of the work itself: from the innermost to where the loop called it."""
    roles: frozenset[Role]
    """Of the frames of the work."""


class FrameTable:
    """Places frames and stacks. Keyed by object identity first, since readers share equal frames; the
    evidence must outlive the table."""

    def __init__(self, ownership: Ownership) -> None:
        self._ownership = ownership
        self._by_id: dict[int, PlacedFrame] = {}
        self._by_value: dict[tuple[str, str, int, int, int, int], PlacedFrame] = {}
        self._shown: dict[tuple[str, str, int], StackFrame] = {}
        self._stack_by_id: dict[int, PlacedStack] = {}
        self._stack_by_frames: dict[Placed, PlacedStack] = {}
        self._parts: dict[tuple[str, str], tuple[bool, Role | None]] = {}
        self._boundaries: list[PlacedFrame] = []
        self._has_ours = False

    def place(self, stack: Stack) -> PlacedStack:
        """The stack, the same object for equal ones."""
        placed = self._stack_by_id.get(id(stack))
        if placed is None:
            frames = self._place_frames(stack.frames)
            placed = self._stack_by_frames.get(frames)
            if placed is None:
                placed = self._stack_by_frames[frames] = self._make_stack(frames)
            self._stack_by_id[id(stack)] = placed
        return placed

    def _place_frames(self, frames: tuple[Frame, ...]) -> Placed:
        known = self._by_id
        for frame in frames:
            if id(frame) in known:
                break  # mostly only the inner frames of a stack are new
            self._add(frame)
        try:
            placed = tuple(map(known.__getitem__, map(id, frames)))
        except KeyError:
            placed = tuple([known.get(id(frame)) or self._add(frame) for frame in frames])
        if self._has_ours:
            placed = tuple([view for view in placed if view.owner is not Owner.OURS])
        return placed

    def _make_stack(self, frames: Placed) -> PlacedStack:
        edges = [frames.index(view) for view in self._boundaries if view in frames]
        work = frames[: min(edges)] if edges else frames
        return PlacedStack(
            frames=frames, work=work, roles=frozenset([view.role for view in work if view.role is not None])
        )

    def _add(self, frame: Frame) -> PlacedFrame:
        key = (frame.qualname, frame.file, frame.line, frame.end_line, frame.column, frame.end_column)
        view = self._by_value.get(key)
        if view is None:
            view = self._by_value[key] = self._judge(frame)
            self._has_ours |= view.owner is Owner.OURS
            if view.owner is not Owner.OWN and is_boundary(frame.file, frame.function):
                self._boundaries.append(view)
        self._by_id[id(frame)] = view
        return view

    def _judge(self, frame: Frame) -> PlacedFrame:
        owner = self._ownership.of(frame.file)
        own = owner is Owner.OWN
        shown = self._show(frame, in_app=own)
        function = (shown.file, shown.qualname)
        part = self._parts.get(function)
        if part is None:
            plumbing = not own and is_plumbing(frame.file, frame.function, stdlib=owner is Owner.STDLIB)
            part = self._parts[function] = (plumbing, None if own else _role(frame.file))
        return PlacedFrame(
            frame=frame, shown=shown, owner=owner, function=function, plumbing=part[0], role=part[1]
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


def _role(file: str) -> Role | None:
    if is_import_machinery(file):
        return Role.IMPORT
    return Role.CHILD if is_child_control(file) else None


def fold_comprehension(qualname: str) -> str:
    """A comprehension's frame goes by its function's name, as from 3.12 where it has no frame (PEP 709)."""
    while qualname.endswith(_COMPREHENSIONS):
        outer = qualname.rpartition(".")[0]
        qualname = outer.removesuffix(".<locals>") if outer else "<module>"
    return qualname
