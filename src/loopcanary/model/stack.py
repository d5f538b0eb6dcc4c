"""Frames and stacks, as the walker read them."""

from __future__ import annotations

from loopcanary.late_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One Python frame at one moment.

    Lines and columns count from 1; 0 means unknown. Columns are UTF-8 byte offsets of the call that
    was being executed (PEP 657), `end_column` one past its last byte.
    """

    qualname: str
    file: str
    line: int = 0
    end_line: int = 0
    column: int = 0
    end_column: int = 0
    first_line: int = 0
    code_flags: int = 0

    @property
    def function(self) -> str:
        """The last part of the qualified name: `A.run.<locals>.step` -> `step`."""
        return self.qualname.rpartition(".")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """Frames, innermost first.

    `truncated`: outer frames were left out at the walker's bound. `inner_cut`: inner frames were left out,
    since they moved while they were read; the thread was running Python code below the first frame.
    """

    frames: tuple[Frame, ...]
    truncated: bool = False
    inner_cut: bool = False
