"""Imports of ours that are not looked for in the current folder.

`python -c`, a prompt and notebooks have '' in sys.path: the folder in which the program is at that moment.
It may be another user's. What the program imports is found as ever.
"""

from __future__ import annotations

import os
import sys
from _frozen_importlib_external import PathFinder
from _thread import get_ident

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

_threads: list[int] = []
"""Those whose imports these are, once for each call."""


class _AbsoluteFinder(PathFinder):
    """In the place of Python's own, where other threads' imports, which go through the list, miss none."""

    @classmethod
    def find_spec(cls, fullname: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        if path is None and get_ident() in _threads:
            path = [one for one in sys.path if type(one) is str and os.path.isabs(one)]
        return PathFinder.find_spec(fullname, path, target)


def found_absolutely(make: Callable[[], Any]) -> Any:
    """What `make` gives, and raises. Any thread."""
    me = get_ident()
    _threads.append(me)
    _replace(PathFinder, _AbsoluteFinder)
    try:
        return make()
    finally:
        _threads.remove(me)
        if not _threads:
            _replace(_AbsoluteFinder, PathFinder)
        if _threads:  # one may have begun meanwhile
            _replace(PathFinder, _AbsoluteFinder)


def as_here(make: Callable[[], Any]) -> Callable[[], Any]:
    """`make` for another thread: it imports as the calling thread does."""
    return (lambda: found_absolutely(make)) if get_ident() in _threads else make


def forget_threads() -> None:
    """In a forked child, which has none of the others."""
    _threads[:] = [one for one in _threads if one == get_ident()]
    if not _threads:
        _replace(_AbsoluteFinder, PathFinder)


def _replace(finder: object, other: object) -> None:
    if finder in sys.meta_path:
        sys.meta_path[sys.meta_path.index(finder)] = other  # type: ignore[call-overload]
