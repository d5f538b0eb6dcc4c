"""Attributes of a library's classes and modules that are replaced, and the way back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class LaidPatches:
    """What was replaced, newest last."""

    def __init__(self) -> None:
        self._laid: list[tuple[Any, str, object, object]] = []

    def put(self, owner: Any, name: str, make: Callable[[Any], object]) -> None:
        """Puts `make(original)` in the original's place. Nothing, where the owner itself has none."""
        original = vars(owner).get(name)
        if original is not None:
            replacement = make(original)
            self._laid.append((owner, name, original, replacement))
            setattr(owner, name, replacement)

    def take_back(self) -> None:
        """Puts every original back, except where another tool has patched over ours."""
        while self._laid:
            owner, name, original, replacement = self._laid.pop()
            if vars(owner).get(name) is replacement:
                setattr(owner, name, original)
