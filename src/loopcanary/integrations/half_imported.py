"""Modules in the middle of their own import: what they will define is not there yet.

That is found where the import of asyncio, deep inside another library's, starts the engine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable


def is_half_imported(name: str) -> bool:
    """Whether the module's code still runs, or has run this moment."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    return bool(getattr(spec, "_initializing", False))


class SettledWatch:
    """Calls once, at the first import after the module is whole. Stands on sys.meta_path until then."""

    def __init__(self, name: str, after: Callable[[], object]) -> None:
        self._name = name
        self._after = after

    def start(self) -> None:
        """Waits."""
        sys.meta_path.insert(0, self)

    def cancel(self) -> None:
        """Stops waiting. Idempotent."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, _fullname: str, _path: object = None, _target: object = None) -> None:
        """Finds nothing: a look at the module."""
        if not is_half_imported(self._name):
            self.cancel()
            if self._name in sys.modules:
                self._after()
