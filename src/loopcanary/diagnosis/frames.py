"""Frames and stacks with what is known about their place, each distinct one judged once."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from loopcanary.diagnosis.ownership import Owner, Ownership
from loopcanary.diagnosis.plumbing import boundaries, carriers, is_child_control, is_import_machinery
from loopcanary.model import Frame, Stack, StackFrame

_COMPREHENSIONS = ("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>")


class Role(Enum):
    """Frames that tell what the frames inside them are for, however deep these go."""

    IMPORT = "import"
    CHILD = "child"


@dataclass(slots=True, kw_only=True, eq=False)
class Function:
    """What holds for every frame of a function. Compared by identity: a FrameTable makes one of each."""

    file: str
    qualname: str
    name: str
    """The last part of `qualname`."""
    owner: Owner
    plumbing: bool
    """It only carries others."""
    role: Role | None
    calls_work: bool
    """It is the loop's own, and calls the work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """What holds for every function of a file."""

    owner: Owner
    role: Role | None
    carriers: frozenset[str] | None
    """Functions that only carry others; None: all."""
    boundaries: frozenset[str]
    """Functions that call the work."""


@dataclass(slots=True, kw_only=True, eq=False)
class Line:
    """A line of a function, as reports show it. Compared by identity: a FrameTable makes one of each."""

    function: Function
    shown: StackFrame


@dataclass(slots=True, kw_only=True, eq=False)
class PlacedFrame:
    """A frame, how reports show it, and whose it is. Compared by identity: a FrameTable makes one of
    each kind. Nobody changes it, as `Seen`."""

    frame: Frame
    shown: StackFrame
    function: Function
    line: Line

    @property
    def owner(self) -> Owner:
        """Whose it is."""
        return self.function.owner

    @property
    def plumbing(self) -> bool:
        """Whether it only carries others."""
        return self.function.plumbing

    @property
    def role(self) -> Role | None:
        """What it says of the frames inside it."""
        return self.function.role


Placed = tuple[PlacedFrame, ...]
"""Innermost first."""


@dataclass(slots=True, kw_only=True, eq=False)
class Path:
    """The functions of a stack, innermost first. Stacks that differ in lines only have one path. Compared
    by identity: a FrameTable makes one for all stacks of the same functions."""

    whole: tuple[Function, ...]
    """Of all frames."""
    functions: tuple[Function, ...]
    """Of the frames of the work."""
    distinct: tuple[Function, ...]
    """Each of these once: recursion is one function..."""
    places: dict[Function, int]
    """...and where in `functions` its innermost frame is."""
    roles: tuple[Role, ...]
    """Of the frames of the work."""


@dataclass(slots=True, kw_only=True, eq=False)
class ShownStack:
    """A stack as a person reads it: all that differ only in where on its lines they were are one. Compared by
    identity: a FrameTable makes one of each."""

    lines: tuple[Line, ...]

    @property
    def frames(self) -> tuple[StackFrame, ...]:
        """As reports show them."""
        return tuple([line.shown for line in self.lines])


@dataclass(slots=True, kw_only=True, eq=False)
class PlacedStack:
    """A stack without the frames of loopcanary. Compared by identity, as its frames. Nobody changes it."""

    frames: Placed
    shown: ShownStack
    work: Placed
    """The frames of the work itself: from the innermost to where the loop called it."""
    path: Path


_NO_PATH = Path(whole=(), functions=(), distinct=(), places={}, roles=())
NO_STACK = PlacedStack(frames=(), shown=ShownStack(lines=()), work=(), path=_NO_PATH)
"""Of a sample whose stack could not be read."""


class FrameTable:
    """Places frames and stacks. Keyed by object identity first, since readers share equal frames; the
    evidence must outlive the table.

    A stall may have hundreds of stacks that differ. What is asked of frames is asked once of each function,
    what is asked of stacks once of each path, and the outer frames that a stack shares with the one before
    are taken over: to look at all frames of each would be most of a diagnosis.
    """

    def __init__(self, ownership: Ownership) -> None:
        self._ownership = ownership
        self._by_id: dict[int, PlacedFrame] = {}
        self._by_value: dict[tuple[str, str, int, int, int, int], PlacedFrame] = {}
        self._by_name: dict[tuple[str, str], Function] = {}
        self._functions: dict[tuple[str, str], Function] = {}
        self._files: dict[str, _File] = {}
        self._lines: dict[tuple[Function, int], Line] = {}
        self._stack_by_id: dict[int, PlacedStack] = {}
        self._stack_by_frames: dict[Placed, PlacedStack] = {}
        self._shown: dict[tuple[Line, ...], ShownStack] = {}
        self._paths: dict[tuple[Function, ...], Path] = {}
        self._last: tuple[tuple[Frame, ...], PlacedStack] = ((), NO_STACK)
        self._has_ours = False

    def place(self, stack: Stack) -> PlacedStack:
        """The stack, the same object for equal ones."""
        placed = self._stack_by_id.get(id(stack))
        if placed is None:
            placed = self._stack_by_id[id(stack)] = self._place(stack.frames)
        return placed

    def _place(self, read: tuple[Frame, ...]) -> PlacedStack:
        before, last = self._last
        shared = _shared_tail(read, before)
        inner = self._place_frames(read[: len(read) - shared])
        if self._has_ours:  # fewer are placed than were read
            inner, shared = self._place_frames(read), 0
            inner = tuple([view for view in inner if view.owner is not Owner.OURS])
        edge = len(last.frames) - shared
        frames = inner + last.frames[edge:]
        placed = self._stack_by_frames.get(frames)
        if placed is None:
            functions = tuple([view.function for view in inner]) + last.path.whole[edge:]
            path = self._paths.get(functions)
            if path is None:
                path = self._paths[functions] = _make_path(functions)
            lines = tuple([view.line for view in inner]) + last.shown.lines[edge:]
            shown = self._shown.get(lines)
            if shown is None:
                shown = self._shown[lines] = ShownStack(lines=lines)
            placed = self._stack_by_frames[frames] = PlacedStack(
                frames=frames, shown=shown, work=frames[: len(path.functions)], path=path
            )
        self._last = read, placed
        return placed

    def _place_frames(self, frames: tuple[Frame, ...]) -> Placed:
        known = self._by_id
        for frame in frames:
            if id(frame) in known:
                break  # mostly only the inner frames of a stack are new
            self._add(frame)
        try:
            return tuple([known[id(frame)] for frame in frames])
        except KeyError:
            return tuple([known.get(id(frame)) or self._add(frame) for frame in frames])

    def _add(self, frame: Frame) -> PlacedFrame:
        key = (frame.qualname, frame.file, frame.line, frame.end_line, frame.column, frame.end_column)
        view = self._by_value.get(key)
        if view is None:
            name = (frame.file, frame.qualname)
            function = self._by_name.get(name)
            if function is None:
                function = self._by_name[name] = self._function_of(frame.file, frame.qualname)
            line = self._line_of(function, frame.line)
            view = PlacedFrame(frame=frame, shown=line.shown, function=function, line=line)
            self._by_value[key] = view
        self._by_id[id(frame)] = view
        return view

    def _function_of(self, file: str, qualname: str) -> Function:
        qualname = fold_comprehension(qualname)
        function = self._functions.get((file, qualname))
        if function is None:
            function = self._functions[file, qualname] = self._judge(file, qualname)
            self._has_ours |= function.owner is Owner.OURS
        return function

    def _judge(self, file: str, qualname: str) -> Function:
        known = self._files.get(file)
        if known is None:
            known = self._files[file] = _judge_file(file, self._ownership.of(file))
        name = qualname.rpartition(".")[2]
        return Function(
            file=file,
            qualname=qualname,
            name=name,
            owner=known.owner,
            plumbing=known.carriers is None or name in known.carriers,
            role=known.role,
            calls_work=name in known.boundaries,
        )

    def _line_of(self, function: Function, number: int) -> Line:
        line = self._lines.get((function, number))
        if line is None:
            shown = StackFrame(
                function=function.name,
                qualname=function.qualname,
                file=function.file,
                line=number,
                in_app=function.owner is Owner.OWN,
            )
            line = self._lines[function, number] = Line(function=function, shown=shown)
        return line


def _shared_tail(left: tuple[Frame, ...], right: tuple[Frame, ...]) -> int:
    """A number of outer frames that two stacks share: all but the innermost few, or three quarters of them.
    To find the number itself costs more than it saves; so does it to compare unequal frames, which is slow:
    where stacks differ, one of a few places mostly tells."""
    most = min(len(left), len(right)) - 1
    quarter = most // 4
    if quarter < 1:
        return 0
    for count in (quarter, 2 * quarter, 3 * quarter):
        if left[-count] is not right[-count]:
            return 0
    for count in (most, most - 1, most - 2, 3 * quarter):
        if left[-count] is right[-count] and left[-count:] == right[-count:]:
            return count
    return 0


def _make_path(functions: tuple[Function, ...]) -> Path:
    work, distinct = functions, tuple(dict.fromkeys(functions))
    calls_work = [function for function in distinct if function.calls_work]
    if calls_work:
        work = functions[: functions.index(calls_work[0])]
        distinct = distinct[: distinct.index(calls_work[0])]
    return Path(
        whole=functions,
        functions=work,
        distinct=distinct,
        # From the outermost inwards, so that of a function the innermost place is what stays.
        places=dict(zip(reversed(work), range(len(work) - 1, -1, -1), strict=True)),
        roles=tuple(dict.fromkeys([function.role for function in distinct if function.role is not None])),
    )


def _judge_file(file: str, owner: Owner) -> _File:
    if owner is Owner.OWN:
        return _File(owner=owner, role=None, carriers=frozenset(), boundaries=frozenset())
    imports = is_import_machinery(file)
    return _File(
        owner=owner,
        role=Role.IMPORT if imports else Role.CHILD if is_child_control(file) else None,
        carriers=carriers(file, stdlib=owner is Owner.STDLIB),
        boundaries=boundaries(file),
    )


def fold_comprehension(qualname: str) -> str:
    """A comprehension's frame goes by its function's name, as from 3.12 where it has no frame (PEP 709)."""
    while qualname.endswith(_COMPREHENSIONS):
        outer = qualname.rpartition(".")[0]
        qualname = outer.removesuffix(".<locals>") if outer else "<module>"
    return qualname
