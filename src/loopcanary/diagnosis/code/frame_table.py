"""Places the frames and stacks of a stall, each distinct one once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from loopcanary.diagnosis.code.ownership import Owner, Ownership
from loopcanary.diagnosis.code.plumbing import carriers, is_child_control, is_import_machinery, is_resolver
from loopcanary.diagnosis.code.stack_frames import (
    NO_STACK,
    Function,
    Numbers,
    Path,
    PlacedFrame,
    PlacedStack,
    Role,
    ShownStack,
)
from loopcanary.late_dataclass import dataclass
from loopcanary.model import Frame, Stack, StackFrame
from loopcanary.model.loop_frames import boundaries

_COMPREHENSIONS = ("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>")
_BYTE = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """What holds for every function of a file."""

    owner: Owner
    role: Role | None
    carriers: frozenset[str] | None
    """Functions that only carry others; None: all."""
    boundaries: frozenset[str]
    """Functions that call the work."""


class _Shared:
    """What frames share, their function or their line, by the frame's number."""

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._bytes = bytearray(_BYTE)

    def append(self, number: int) -> None:
        """What the next frame shares."""
        if len(self._numbers) < _BYTE:
            self._bytes[len(self._numbers)] = number
        self._numbers.append(number)

    def of(self, frames: Numbers) -> Numbers:
        """The same of each frame."""
        if isinstance(frames, bytes):
            return frames.translate(self._bytes)
        return tuple([self._numbers[number] for number in frames])


class FrameTable:
    """Places frames and stacks. Keyed by object identity first, since readers share equal frames; the
    evidence must outlive the table.

    A stall may have hundreds of different stacks, and to look at all frames of each would be most of a
    diagnosis. So frames are asked about once a function, and stacks once a path. A stack is the
    numbers of its frames; one translation gives those of its functions and lines.
    """

    def __init__(self, ownership: Ownership) -> None:
        self._ownership = ownership
        self._files: dict[tuple[str, Owner], _File] = {}
        self._frames: list[PlacedFrame] = []
        self._by_id: dict[int, int] = {}
        self._by_value: dict[tuple[str, str, int, int, int, int], int] = {}
        self._ours: set[int] = set()
        self._comprehensions: set[int] = set()
        self._functions: list[Function] = []
        self._function_numbers: dict[tuple[str, str], int] = {}
        self._by_name: dict[tuple[str, str], int] = {}
        self._function_of_frame = _Shared()
        self._lines: list[StackFrame] = []
        self._line_numbers: dict[tuple[int, int], int] = {}
        self._line_of_frame = _Shared()
        self._stack_by_id: dict[int, PlacedStack] = {}
        self._stacks: dict[Numbers, PlacedStack] = {}
        self._shown: dict[Numbers, ShownStack] = {}
        self._paths: dict[Numbers, Path] = {}
        self._last: tuple[tuple[Frame, ...], Numbers] = ((), b"")
        self._whole: tuple[Frame, ...] = ()

    def place(self, stack: Stack) -> PlacedStack:
        """The stack, the same object for equal ones."""
        placed = self._stack_by_id.get(id(stack))
        if placed is None:
            placed = self._stack_by_id[id(stack)] = self._place(self._number(stack.frames))
        return placed

    def place_outer(self, stack: Stack, count: int) -> PlacedStack:
        """The stack of its `count` outer frames, likewise."""
        return self._place(self._number(stack.frames[-count:]))

    def _place(self, frames: Numbers) -> PlacedStack:
        if not frames:
            return NO_STACK
        placed = self._stacks.get(frames)
        if placed is None:
            functions = self._function_of_frame.of(frames)
            lines = self._line_of_frame.of(self._told_once(frames, functions))
            shown = self._shown.get(lines)
            if shown is None:
                shown = self._shown[lines] = ShownStack(lines=lines, known=self._lines)
            path = self._paths.get(functions)
            if path is None:
                path = self._paths[functions] = _make_path(functions, self._functions)
            placed = self._stacks[frames] = PlacedStack(
                numbers=frames, known=self._frames, shown=shown, path=path
            )
        return placed

    def _told_once(self, frames: Numbers, functions: Numbers) -> Numbers:
        """The frames without those that a comprehension of the same function lies in: up to 3.11 that has a
        frame of its own, and both go by the function's name."""
        if self._comprehensions.isdisjoint(frames):
            return frames
        doubled = {
            index + 1
            for index, (inner, outer) in enumerate(pairwise(functions))
            if inner == outer and frames[index] in self._comprehensions
        }
        kept = [number for index, number in enumerate(frames) if index not in doubled]
        return bytes(kept) if isinstance(frames, bytes) else tuple(kept)

    def _number(self, frames: tuple[Frame, ...]) -> Numbers:
        before, known = self._last
        shared = _shared_tail(frames, before)
        self._whole = frames
        numbers = self._number_each(frames[: len(frames) - shared])
        if shared:
            outer = known[-shared:]
            both_bytes = isinstance(numbers, bytes) and isinstance(outer, bytes)
            numbers = numbers + outer if both_bytes else (*numbers, *outer)  # type: ignore[operator]
        if not self._ours:  # of these a stack has fewer numbers than frames
            self._last = frames, numbers
        return numbers

    def _number_each(self, frames: tuple[Frame, ...]) -> Numbers:
        known = self._by_id
        for frame in frames:
            if id(frame) in known:
                break  # mostly only the inner frames of a stack are new
            self._add(frame)
        try:
            numbers = [known[id(frame)] for frame in frames]
        except KeyError:
            numbers = [known[id(frame)] if id(frame) in known else self._add(frame) for frame in frames]
        if self._ours:
            numbers = [number for number in numbers if number not in self._ours]
        return bytes(numbers) if len(self._frames) <= _BYTE else tuple(numbers)

    def _add(self, frame: Frame) -> int:
        key = (frame.qualname, frame.file, frame.line, frame.end_line, frame.column, frame.end_column)
        number = self._by_value.get(key)
        if number is None:
            number = self._by_value[key] = len(self._frames)
            name = (frame.file, frame.qualname)
            function = self._by_name.get(name)
            if function is None:
                function = self._by_name[name] = self._number_function(frame)
            line = self._number_line(function, frame.line)
            owner = self._functions[function]
            self._frames.append(PlacedFrame(frame=frame, shown=self._lines[line], function=owner))
            self._function_of_frame.append(function)
            self._line_of_frame.append(line)
            if owner.owner is Owner.OURS:
                self._ours.add(number)
            if frame.qualname.endswith(_COMPREHENSIONS):
                self._comprehensions.add(number)
            if number == _BYTE:
                self._widen()
        self._by_id[id(frame)] = number
        return number

    def _widen(self) -> None:
        """There are more frames than bytes: what was found by bytes is found by tuples now."""
        self._stacks = {tuple(frames): stack for frames, stack in self._stacks.items()}
        self._shown = {tuple(lines): shown for lines, shown in self._shown.items()}
        self._paths = {tuple(functions): path for functions, path in self._paths.items()}

    def _number_function(self, frame: Frame) -> int:
        file, qualname = frame.file, fold_comprehension(frame.qualname)
        number = self._function_numbers.get((file, qualname))
        if number is None:
            number = self._function_numbers[file, qualname] = len(self._functions)
            outer = self._whole[self._whole.index(frame) + 1 :]
            self._functions.append(self._judge(file, qualname, outer))
        return number

    def _judge(self, file: str, qualname: str, outer: tuple[Frame, ...]) -> Function:
        owner = self._ownership.of_function(file, qualname, (frame.file for frame in outer))
        known = self._files.get((file, owner))
        if known is None:
            known = self._files[file, owner] = _judge_file(file, owner)
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

    def _number_line(self, function: int, line: int) -> int:
        number = self._line_numbers.get((function, line))
        if number is None:
            number = self._line_numbers[function, line] = len(self._lines)
            known = self._functions[function]
            self._lines.append(
                StackFrame(
                    function=known.name,
                    qualname=known.qualname,
                    file=known.file,
                    line=0 if known.is_generated else line,
                    in_app=known.owner is Owner.OWN,
                )
            )
        return number


def _shared_tail(left: tuple[Frame, ...], right: tuple[Frame, ...]) -> int:
    """A number of outer frames that two stacks share: all but the innermost few, or 0. The exact number costs
    more than it saves, and comparing unequal frames is slow: so only a few places are compared."""
    most = min(len(left), len(right)) - 1
    quarter = most // 4
    if quarter < 1:
        return 0
    for count in (3 * quarter, quarter, 2 * quarter):
        if left[-count] is not right[-count]:
            return 0
    for count in (most, most - 1, most - 2):
        if left[-count] is right[-count] and left[-count:] == right[-count:]:
            return count
    return 0


def _make_path(numbers: Numbers, known: Sequence[Function]) -> Path:
    distinct = list(dict.fromkeys(numbers))
    functions = [known[number] for number in distinct]
    length, count = len(numbers), len(distinct)
    if True in (calls_work := [function.calls_work for function in functions]):
        count = calls_work.index(True)
        length = numbers.index(distinct[count])
    return Path(
        length=length,
        places=dict(zip(functions[:count], map(numbers.index, distinct), strict=False)),
        whole=functions,
        roles=tuple(
            dict.fromkeys([function.role for function in functions[:count] if function.role is not None])
        ),
    )


def _judge_file(file: str, owner: Owner) -> _File:
    if owner is Owner.OWN:
        return _File(owner=owner, role=None, carriers=frozenset(), boundaries=frozenset())
    return _File(
        owner=owner,
        role=_role(file),
        carriers=carriers(file, stdlib=owner is Owner.STDLIB),
        boundaries=boundaries(file),
    )


def _role(file: str) -> Role | None:
    if is_import_machinery(file):
        return Role.IMPORT
    if is_child_control(file):
        return Role.CHILD
    return Role.NAME if is_resolver(file) else None


def fold_comprehension(qualname: str) -> str:
    """A comprehension's frame goes by its function's name, as from 3.12 where it has no frame (PEP 709)."""
    while qualname.endswith(_COMPREHENSIONS):
        outer = qualname.rpartition(".")[0]
        qualname = outer.removesuffix(".<locals>") if outer else "<module>"
    return qualname
