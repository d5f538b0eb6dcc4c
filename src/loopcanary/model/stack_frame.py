"""A frame as reports show it."""

from __future__ import annotations

from dataclasses import dataclass, field

from loopcanary.model.spelling import spelled


@dataclass(frozen=True, slots=True, kw_only=True)
class StackFrame:
    """A frame as reports show it."""

    function: str
    qualname: str = field(metadata=spelled(like="function"))
    file: str
    line: int
    in_app: bool
