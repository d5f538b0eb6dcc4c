"""Ends of the process that no exit handler sees, os._exit and exec: the flight file says that it ended."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loopcanary._native import Native

# All others in `os` call these.
_NAMES = ("_exit", "execv", "execve")
_laid: dict[str, tuple[Any, Any]] = {}
"""The original and ours, by name."""


def note(native: Native) -> None:
    """From now on they are noted. Idempotent."""
    for name in _NAMES:
        if name not in _laid:
            original = getattr(os, name)
            _laid[name] = original, native.noted_end(original)
            setattr(os, name, _laid[name][1])


def note_no_more() -> None:
    """Puts back what is still ours."""
    for name, (original, ours) in _laid.items():
        if getattr(os, name) is ours:
            setattr(os, name, original)
    _laid.clear()
