"""Places the frames and stacks of a stall, each distinct one once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from loopcanary.diagnosis.code.ownership import Owner, Ownership
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
from loopcanary.model.loop_frames import boundaries, tail

_COMPREHENSIONS = ("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>")
_BYTE = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """What holds for every function of a file."""

    owner: Owner
    role: Role | None
    carriers: frozenset[str] | None
    """Functions that only carry others; None: all of the file do."""
    boundaries: frozenset[str]


class _Shared:
    """What frames share, their function or their line, by the frame's number."""

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._bytes = bytearray(_BYTE)

    def append(self, number: int) -> None:
        """Adds what the next frame of the table shares."""
        if len(self._numbers) < _BYTE:
            self._bytes[len(self._numbers)] = number
        self._numbers.append(number)

    def of(self, frames: Numbers) -> Numbers:
        """What each of the frames shares."""
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
        """Replaces keys of bytes by tuples, as there are more frames than a byte can number."""
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


_NONE: frozenset[str] = frozenset()
_ANY: frozenset[str] = frozenset({"*"})

PLUMBING: Mapping[str, frozenset[str]] = {
    # Tail of the path -> functions.
    "asyncio/base_events.py": _ANY,
    "asyncio/events.py": _ANY,
    "asyncio/runners.py": _ANY,
    "asyncio/unix_events.py": _ANY,
    "asyncio/selector_events.py": frozenset({"_process_events"}),
    "concurrent/futures/thread.py": _ANY,
    "gevent/hub.py": _ANY,
    "_core/_run.py": _ANY,
}
"""Never the culprit. Files one level below the standard library are in PLUMBING_MODULES."""

PLUMBING_MODULES: frozenset[str] = frozenset(
    {"selectors.py", "runpy.py", "contextlib.py", "functools.py", "contextvars.py"}
)
"""Files of the standard library all of whose functions only carry others."""

PLUMBING_FUNCTIONS: Mapping[str, frozenset[str]] = {
    "threading.py": frozenset({"_bootstrap", "_bootstrap_inner", "run"}),
}
"""Files of the standard library some of whose functions only carry others."""

IMPORT_FILES: frozenset[str] = frozenset(
    {"<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>", "importlib/__init__.py"}
)

CHILD_FILES: frozenset[str] = frozenset(
    {"multiprocessing/popen_fork.py", "multiprocessing/popen_spawn_posix.py"}
)
"""What starts child processes and waits for them, beside subprocess.py."""


def is_import_machinery(file: str) -> bool:
    return file in IMPORT_FILES or tail(file) in IMPORT_FILES


def is_child_control(file: str) -> bool:
    place = tail(file)
    return place in CHILD_FILES or place.endswith("/subprocess.py")


def is_resolver(file: str) -> bool:
    """Whether the file resolves names by itself, without the C library: dnspython's."""
    return tail(file) == "dns/resolver.py"


def carriers(file: str, *, stdlib: bool) -> frozenset[str] | None:
    """The functions of a file that only carry others; None: all of them. `stdlib`: the file belongs to the
    standard library."""
    if is_import_machinery(file) or file == "<frozen runpy>":
        return None
    place = tail(file)
    name = place.rpartition("/")[2]
    if stdlib and name in PLUMBING_MODULES:
        return None
    functions = PLUMBING.get(place, _NONE)
    if functions is _ANY:
        return None
    return functions | PLUMBING_FUNCTIONS.get(name, _NONE) if stdlib else functions
