"""A frame as reports show it."""

from __future__ import annotations

import re
from dataclasses import field

from loopcanary.late_dataclass import dataclass
from loopcanary.model.spelling import spelled

_GENERIC = re.compile(r"\.?<generic parameters of [^>]*>")
_JAVA_NUMBERS = re.compile(r"\$\$(?:Nest|ExternalSynthetic|Lambda|inlined)\S*?(?=\.|$)|\$\d+")
"""Of classes and methods that a compiler of Java or Kotlin names: no name of Python's has a `$`."""
_SYNTHETIC_NAMES = re.compile(r"\.?<(?:listcomp|dictcomp|setcomp|genexpr|locals)>")

_OF_KERNEL = re.compile(r"(?<=ipykernel)_\d+(?=/\d+\.py$)|(?<=^<ipython-input)-\d+(?=-)")


@dataclass(frozen=True, slots=True, kw_only=True)
class StackFrame:
    """A frame as reports show it."""

    function: str
    """Last part of `qualname`."""
    qualname: str = field(metadata=spelled(like="function"))
    file: str
    line: int
    """From 1; 0 unknown."""
    in_app: bool
    """Whether the frame is of the program's own code."""


def plain_cell(file: str) -> str:
    """The file's path. If it is a notebook's cell, the parts that differ between kernels are removed: the
    process's folder, or the cell's number."""
    return _OF_KERNEL.sub("", file)


def plain_function(qualname: str) -> str:
    """A qualified name without the parts that differ between versions of Python: comprehensions are frames up
    to 3.11 only, and generic functions have one more frame since 3.12."""
    qualname = _JAVA_NUMBERS.sub("$", qualname)
    return _SYNTHETIC_NAMES.sub("", _GENERIC.sub("", qualname)).strip(".") or "<module>"
