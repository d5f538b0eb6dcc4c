"""Brackets around a library's functions, for the hooks of the portable engine (turns.py): the words of
native/probes/hooks/around.h in Python."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Protocol

_NAMES_MAX = 1024
_Function = Callable[..., Any]
_Ends = Callable[[], object]


class _Bracketing(Protocol):
    def wait_begin(self) -> None: ...

    def wait_end(self) -> None: ...

    def work_begin(self, work: object = None) -> None: ...

    def work_end(self) -> None: ...


def wait(hooks: _Bracketing, function: _Function) -> _Function:
    """The function's call is the loop's wait."""

    def waiting(*args: Any, **names: Any) -> Any:
        hooks.wait_begin()
        try:
            return function(*args, **names)
        finally:
            hooks.wait_end()

    return update_wrapper(waiting, function)


def works(enter: Callable[[], _Ends], function: _Function) -> _Function:
    """`enter()` is called before the function, and what it answers afterwards."""

    def running(*args: Any, **names: Any) -> Any:
        leave = enter()
        try:
            return function(*args, **names)
        finally:
            leave()

    return update_wrapper(running, function)


def work(
    hooks: _Bracketing, function: _Function, attribute: str, name_of: Callable[[type, type], str]
) -> _Function:
    """The function's call is a callback, named by the types of its second argument and of its attribute."""
    known: dict[tuple[type, type], str] = {}

    def working(self: Any, subject: Any, *args: Any, **names: Any) -> Any:
        types = (type(subject), type(getattr(subject, attribute, None)))
        name = known.get(types)
        if name is None:
            name = name_of(*types)
            if len(known) < _NAMES_MAX:
                known[types] = name
        hooks.work_begin(name)
        try:
            return function(self, subject, *args, **names)
        finally:
            hooks.work_end()

    return update_wrapper(working, function)
