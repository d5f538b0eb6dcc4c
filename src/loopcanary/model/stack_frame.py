"""A frame as reports show it."""

from __future__ import annotations

from dataclasses import field

from loopcanary.late_dataclass import dataclass
from loopcanary.model.spelling import spelled


@dataclass(frozen=True, slots=True, kw_only=True)
class StackFrame:
    """A frame as reports show it."""

    function: str
    """Last part of `qualname`."""
    """Last part of `qualname`."""
    qualname: str = field(metadata=spelled(like="function"))
    file: str
    line: int
    """From 1; 0 unknown."""
    in_app: bool
    """It is the program's own code."""
