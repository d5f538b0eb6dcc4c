"""Names of the threads of this process, by the kernel's numbers; of those, too, that ended a moment ago.

A thread that held the GIL through a stall has often ended when the drain gets to ask.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

_GONE_MAX = 256
"""Names that are kept of threads that have ended."""


class ThreadNames:
    """What has been seen so far, the newest last. Drain thread."""

    def __init__(self) -> None:
        self._known: dict[int, str] = {}

    def look(self) -> tuple[tuple[int, str], ...]:
        """(native id, name) of all that live, and of the last that have ended. Raises nothing that the
        program's threads do."""
        for thread in _ended_but_referenced():
            self._note(thread)
        # The table is only looked at: asking `threading` for the current thread would make an object for it
        # that the program could see.
        living: list[Any] = list(threading._active.values())  # type: ignore[attr-defined]  # noqa: SLF001
        for thread in living:
            self._note(thread)
        surplus = len(self._known) - len(living) - _GONE_MAX
        for number in list(self._known)[: max(surplus, 0)]:
            del self._known[number]
        return tuple(self._known.items())

    def _note(self, thread: Any) -> None:
        try:
            number, name = thread.native_id, thread.name
        except Exception:  # noqa: BLE001 - a class of the program's own may make what it likes of its name
            return
        if number is not None and isinstance(name, str):
            self._known.pop(number, None)  # the kernel gives numbers out again: the latest owner counts
            self._known[number] = name


def _ended_but_referenced() -> Iterable[Any]:
    """Thread objects that the program still holds. `threading` keeps them for its own clean-up."""
    try:
        return list(getattr(threading, "_dangling", ()))
    except RuntimeError:  # another thread adds itself
        return ()
