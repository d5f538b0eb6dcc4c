"""Functions of other people's classes and modules, replaced and put back."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from types import FunctionType, ModuleType
from typing import Any


class Patches:
    """What one process has replaced. Under the GIL; callers patch and take back one at a time."""

    def __init__(self) -> None:
        self._laid: list[tuple[type | ModuleType, str, FunctionType, FunctionType]] = []
        self._undo: list[Callable[[], object]] = []

    def wrap(self, owner: type | ModuleType, name: str, make: Callable[[FunctionType], Any]) -> bool:
        """Replaces a method, or a module's function, by what `make` returns for it.

        Returns:
            Whether it was replaced. Left alone are a method that the class inherits, one that is no plain
            function any more, and one that is ours already.
        """
        original = owner.__dict__.get(name)
        is_ours = any(original is replacement for _, _, _, replacement in self._laid)
        if is_ours or not isinstance(original, FunctionType):
            return False
        replacement = make(original)
        if isinstance(replacement, FunctionType):  # others have the original's attributes by themselves
            update_wrapper(replacement, original)
        setattr(owner, name, replacement)
        self._laid.append((owner, name, original, replacement))
        return True

    def when_taken_back(self, undo: Callable[[], object]) -> None:
        """Something else to undo."""
        self._undo.append(undo)

    def take_back(self) -> None:
        """Puts back what is still ours. A function that another tool put over ours goes on to call ours,
        which then reports to no engine."""
        laid, self._laid = self._laid, []
        for owner, name, original, replacement in reversed(laid):
            if owner.__dict__.get(name) is replacement:
                setattr(owner, name, original)
        undo, self._undo = self._undo, []
        for each in undo:
            each()
