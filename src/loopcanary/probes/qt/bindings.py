"""What PySide and PyQt are asked alike: where Qt's object is, and what they know about it."""

from __future__ import annotations

import sys
from typing import Any


def address_of(binding: str, thing: Any) -> int:
    """Of the C++ object that is behind one of Python's."""
    if binding.startswith("PySide"):
        return int(sys.modules[f"shiboken{binding[-1]}"].getCppPointer(thing)[0])
    return int(sys.modules[f"{binding}.sip"].unwrapinstance(thing))


def is_alive(binding: str, thing: Any) -> bool:
    """Whether there is a C++ object behind it."""
    if binding.startswith("PySide"):
        return bool(sys.modules[f"shiboken{binding[-1]}"].isValid(thing))
    return not sys.modules[f"{binding}.sip"].isdeleted(thing)


def is_made_by_python(binding: str, thing: Any) -> bool:
    """Whether Python code made it, and not Qt's own."""
    if binding.startswith("PySide"):
        return bool(sys.modules[f"shiboken{binding[-1]}"].createdByPython(thing))
    return bool(sys.modules[f"{binding}.sip"].ispycreated(thing))
