"""What is asked of PySide and PyQt alike: where Qt's object is, and what they know of it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType

_NAMES = ("loopcanary learns", "where objects are named")
"""8 to 40 ASCII characters, and unlike each other."""


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


def learn_names(native: ModuleType, binding: str) -> None:
    """Shows the extension where objects keep their names, by two that are made for it. On a thread whose loop
    runs: the first object that is made of Qt's decides which thread is the main one."""
    core = sys.modules[f"{binding}.QtCore"]
    objects = [core.QObject() for _ in _NAMES]
    for thing, name in zip(objects, _NAMES, strict=True):
        thing.setObjectName(name)
    first, second = (address_of(binding, thing) for thing in objects)
    native.qt_learn_names(first, _NAMES[0], second, _NAMES[1])
