"""asyncio loops that never wait, since the same work schedules itself each time.

`while not done: await asyncio.sleep(0)`, or a callback that calls `call_soon` with itself: a core is busy for
nothing, and everything else on the loop is slower. Many short turns are no stall. So, while turn after turn
begins with ready work, the loop's queue is looked at now and then.
"""

from __future__ import annotations

import time

TYPE_CHECKING = False  # typing is not loaded for it: most watched interpreters load this
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

SPIN_NS = 1_000_000_000
"""A loop that has not waited for this time spins, if the same work was ready at each look."""
_LOOKS_LEAST = 4
_AGAIN = 10
"""It is reported again when it has lasted ten times as long."""
_EXAMINED_MAX = 32


class SpinWatch:
    """Of one loop. Its thread; the caller contains what is raised."""

    def __init__(
        self,
        ready: Iterable[Any] | None,
        tell: Callable[[str, int, int, int], None],
        clock: Callable[[], int] = time.monotonic_ns,
        identities: Callable[[Iterable[Any]], Iterable[tuple[int, str]]] | None = None,
    ) -> None:
        """Looks at nothing yet.

        Args:
            ready: The loop's queue of handles.
            tell: Called at the end of a spin with a name, begin and end in ns, and the number of turns.
            clock: As time.monotonic_ns().
            identities: Number and name of each that is ready, where these are no handles of asyncio's.
        """
        self._identities = identities or _identities
        self._ready = ready
        self._tell = tell
        self._clock = clock
        self._limit_ns = SPIN_NS
        self._begin()

    def _begin(self) -> None:
        self._begin_ns: int | None = None
        self._turns = self._looks = 0
        self._always: set[tuple[int, str]] = set()

    def look(self, turns: int) -> None:
        """`turns` more turns began with ready work; 0: the loop is about to wait."""
        if turns == 0 or self._ready is None:
            self._begin()
            self._limit_ns = SPIN_NS
            return
        now_ns = self._clock()
        there = set(self._identities(self._ready))
        if self._begin_ns is None or not self._always & there:
            self._begin()
            self._begin_ns, self._always = now_ns, there
            return
        self._always &= there
        self._turns += turns
        self._looks += 1
        if now_ns - self._begin_ns > self._limit_ns and self._looks >= _LOOKS_LEAST:
            begin_ns, all_turns = self._begin_ns, self._turns
            name = min(name for _, name in self._always)
            self._begin()
            self._limit_ns *= _AGAIN
            self._tell(name, begin_ns, now_ns, all_turns)


def _identities(ready: Iterable[Any]) -> Iterable[tuple[int, str]]:
    """What is ready: each task, or plain callback, by its number and its name."""
    for number, handle in enumerate(ready):
        if number == _EXAMINED_MAX:
            return
        callback = getattr(handle, "_callback", None)
        if callback is None:
            continue
        task = task_of(callback)
        if task is not None:
            yield id(task), name_of(callback)
        else:
            function = getattr(callback, "func", callback)
            bound = getattr(function, "__func__", None)  # a bound method is a new object each time
            number_of = id(function) if bound is None else hash((id(function.__self__), id(bound)))
            yield number_of, name_of(callback)


def name_of(callback: Any) -> str:
    """The name of work in the loop's queue, for reports."""
    task = task_of(callback)
    coroutine = task.get_coro() if task is not None else None
    if coroutine is not None:
        return f"{_qualname_of(coroutine)} (task)"
    return _qualname_of(getattr(callback, "func", callback))


def task_of(callback: Any) -> Any:
    """The task, if the callback is a task's step; else None."""
    task = getattr(callback, "__self__", None)
    return task if hasattr(task, "get_coro") else None


def _qualname_of(work: Any) -> str:
    name = getattr(work, "__qualname__", None)
    return name if isinstance(name, str) else type(work).__qualname__
