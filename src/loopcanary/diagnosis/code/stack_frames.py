"""Frames and stacks with what is known about their place."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from loopcanary.diagnosis.code.ownership import Owner
from loopcanary.late_dataclass import dataclass
from loopcanary.model import Frame, StackFrame


class Role(Enum):
    """Frames that say what the frames inside them are for, at any depth."""

    IMPORT = "import"
    CHILD = "child"
    NAME = "name"


@dataclass(slots=True, kw_only=True, eq=False)
class Function:
    """What holds for every frame of a function. Compared by identity: a FrameTable makes one of each."""

    file: str
    qualname: str
    name: str
    owner: Owner
    plumbing: bool
    """The function only carries others."""
    role: Role | None
    calls_work: bool
    """The function is the loop's own, and calls the work."""

    @property
    def is_generated(self) -> bool:
        """Its lines are not those of the file of its name, as of a template."""
        return self.owner is Owner.SYNTHETIC and not self.file.startswith("<")


@dataclass(slots=True, kw_only=True, eq=False)
class PlacedFrame:
    """A frame, how reports show it, and whose it is. Compared by identity: a FrameTable makes one of each
    kind. Not changed after that, as `WeighedSample`."""

    frame: Frame
    shown: StackFrame
    function: Function

    @property
    def owner(self) -> Owner:
        return self.function.owner

    @property
    def plumbing(self) -> bool:
        return self.function.plumbing

    @property
    def role(self) -> Role | None:
        return self.function.role


Placed = tuple[PlacedFrame, ...]
"""Innermost first."""


@dataclass(slots=True, kw_only=True, eq=False)
class Path:
    """The functions of a stack, innermost first. Compared by identity: a FrameTable makes one for all stacks
    of the same functions, whatever their lines."""

    length: int
    """How many frames the work has."""
    places: dict[Function, int]
    """Their functions, each once since recursion is one function, and the index of its innermost frame."""
    whole: list[Function]
    """The functions of all frames, each once."""
    roles: tuple[Role, ...]
    """The roles of the frames of the work."""


Numbers = bytes | tuple[int, ...]
"""Of the frames of a stack, or of what they have in common with others: bytes while there are few, since
these are translated, compared and kept at a fraction of the cost."""


@dataclass(slots=True, kw_only=True, eq=False)
class ShownStack:
    """A stack as a person reads it: all that differ only in where on its lines they were are one. Compared by
    identity: a FrameTable makes one of each."""

    lines: Numbers
    known: Sequence[StackFrame]
    """Every line of the table, by its number."""

    @property
    def frames(self) -> tuple[StackFrame, ...]:
        known = self.known
        return tuple([known[number] for number in self.lines])


@dataclass(slots=True, kw_only=True, eq=False)
class PlacedStack:
    """A stack without the frames of loopcanary. Compared by identity, as its frames; not changed."""

    numbers: Numbers
    known: Sequence[PlacedFrame]
    """Every frame of the table, by its number."""
    shown: ShownStack
    path: Path

    def __bool__(self) -> bool:
        """Whether it has frames: a stack that could not be read has none."""
        return bool(self.numbers)

    @property
    def frames(self) -> Placed:
        """All of them, innermost first; made when it is asked for, since mostly one or two are wanted."""
        return self.below(len(self.numbers))

    @property
    def work(self) -> Placed:
        """The frames of the work itself: from the innermost to where the loop called it."""
        return self.below(self.path.length)

    def at(self, index: int) -> PlacedFrame:
        """One frame; 0 is the innermost."""
        return self.known[self.numbers[index]]

    def below(self, index: int) -> Placed:
        known = self.known
        return tuple([known[number] for number in self.numbers[:index]])


_NO_PATH = Path(length=0, places={}, whole=[], roles=())
NO_STACK = PlacedStack(numbers=b"", known=(), shown=ShownStack(lines=b"", known=()), path=_NO_PATH)
"""Stands for the stack of a sample that could not be read."""
