"""What is put into the locks of asyncio and anyio: a word when one has to be waited for, and a note of each
`acquire()`.

`async with lock` needs no note: while its block runs, the lock's `__aexit__` lies on the coroutine's value
stack, where it is found.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from types import FrameType
from typing import Any

from loopcanary.tracers.locks.primitives import (
    ACQUIRES,
    FOLDERS,
    Primitive,
    is_plumbing,
    is_taken,
    know_anyio,
    know_trio,
)
from loopcanary.tracers.places import Places, noted

PLAIN: tuple[type[Any], ...] = (asyncio.Lock, asyncio.Semaphore, asyncio.BoundedSemaphore)
"""Of other classes below these the program may have changed what acquires."""
_UNCHANGED = PLAIN[:2]
"""Those that do not change what releases."""
FOLDERS.append(__file__)
_NOTES_MAX = 64
_BLOCK = ("__aenter__", "__aexit__")


@dataclass(frozen=True, slots=True)
class Acquisition:
    """An `acquire()` without `async with`."""

    task: weakref.ref[Any]
    name: str
    frames: Places


class LockHooks:
    """The hooks in the classes. They stay callable when they are taken out: the program may have kept
    one, as each Condition does."""

    def __init__(
        self, contended: Callable[[Primitive], object], failed: Callable[[Exception], object]
    ) -> None:
        """`contended`: called on the loop's thread when a task is about to wait; `failed`: with what a hook
        of ours raised; it takes them out."""
        self._contended = contended
        self._failed = failed
        self._is_on = False
        self._notes: weakref.WeakKeyDictionary[Primitive, list[Acquisition]] = weakref.WeakKeyDictionary()
        self._put: list[tuple[type[Any], str, Any, Any]] = []

    def notes(self, lock: Primitive) -> tuple[Acquisition, ...]:
        """Those that were not released yet, the oldest first."""
        return tuple(self._notes.get(lock, ()))

    def put_in(self) -> None:
        """The thread that starts the engine."""
        self._is_on = True
        for kind in (asyncio.Lock, asyncio.Semaphore):
            acquire, release, enter = kind.acquire, kind.release, kind.__aenter__
            entering = self._entering_lock if kind is asyncio.Lock else self._entering_semaphore
            self._set(kind, "acquire", self._noting(acquire))
            self._set(kind, "release", self._releasing(release))
            self._set(kind, "__aenter__", wraps(enter)(entering(acquire, enter)))
            self._set(kind, "__aexit__", wraps(kind.__aexit__)(_leaving(release)))

    def put_in_anyio(self, backend: Any) -> None:
        """When the program has loaded it. Any thread."""
        if not self._is_on or not know_anyio(backend):
            return
        limiter, name = backend.CapacityLimiter, "acquire_on_behalf_of"
        self._set(limiter, name, self._telling(getattr(limiter, name), self._contended))
        for kind in (backend.Lock, backend.Semaphore):
            self._set(kind, "acquire", self._acquiring(kind.acquire))
            self._set(kind, "acquire_nowait", self._noting_at_once(kind.acquire_nowait))
            self._set(kind, "release", self._releasing(kind.release))

    def put_in_trio(self, sync: Any, contended: Callable[[Primitive], object]) -> None:
        """When the program has loaded it. Any thread. `contended`: as that of asyncio; acquisitions are not
        noted: a lock knows its task, and trio wakes those in line when that ends."""
        for kind, name in know_trio(sync) if self._is_on else ():
            self._set(kind, name, self._telling(getattr(kind, name), contended))

    def take_out(self) -> None:
        """Any thread. What the program has put over a hook stays."""
        self._is_on = False
        for kind, name, ours, before in reversed(self._put):
            if kind.__dict__.get(name) is ours:
                if before is None:
                    delattr(kind, name)
                else:
                    setattr(kind, name, before)
        self._put.clear()
        self._notes.clear()

    def _set(self, kind: type[Any], name: str, hook: Any) -> None:
        self._put.append((kind, name, hook, kind.__dict__.get(name)))
        setattr(kind, name, hook)

    def _noting(self, original: Any) -> Any:
        @wraps(original)
        async def acquire(lock: Any) -> Any:
            if self._is_on and is_taken(lock):
                self._tell(self._contended, lock)
            result = await original(lock)
            if self._is_on and not _by_block(sys._getframe(1)):
                self._tell(self._note, lock)
            return result

        return acquire

    def _acquiring(self, original: Any) -> Any:
        """No coroutine of its own for an `async with`, which is not noted."""
        noting = self._noting(original)

        @wraps(original)
        def acquire(lock: Any) -> Any:
            if self._is_on and not _by_block(sys._getframe(1)):
                return noting(lock)
            if self._is_on and is_taken(lock):
                self._tell(self._contended, lock)
            return original(lock)

        return _as_coroutine_function(acquire)

    def _noting_at_once(self, original: Any) -> Any:
        @wraps(original)
        def acquire_nowait(lock: Any) -> Any:
            result = original(lock)
            if self._is_on:
                self._tell(self._note, lock)
            return result

        return acquire_nowait

    def _releasing(self, original: Any) -> Any:
        @wraps(original)
        def release(lock: Any) -> Any:
            if self._notes and not _by_block(sys._getframe(1)):
                self._tell(self._forget, lock)
            return original(lock)

        return release

    def _entering_lock(self, acquire: Any, original: Any) -> Any:
        """No coroutine of its own: it costs less than the original, which pays for the test. What it leaves
        out is the note, and that `as` gives None: it is True."""
        lock: Any = asyncio.Lock

        def __aenter__(self_: Any) -> Any:  # noqa: N807 - its name
            if type(self_) is not lock:
                return original(self_)
            if self_._locked:
                self._tell(self._contended, self_)
            return acquire(self_)

        return __aenter__

    def _entering_semaphore(self, acquire: Any, original: Any) -> Any:
        """As of a lock."""

        def __aenter__(self_: Any) -> Any:  # noqa: N807 - its name
            if type(self_) not in PLAIN:
                return original(self_)
            if not self_._value:
                self._tell(self._contended, self_)
            return acquire(self_)

        return __aenter__

    def _telling(self, original: Any, contended: Callable[[Primitive], object]) -> Any:
        @wraps(original)
        def acquire(lock: Any, *args: Any, **kwargs: Any) -> Any:
            if self._is_on and is_taken(lock):
                self._tell(contended, lock)
            return original(lock, *args, **kwargs)

        return _as_coroutine_function(acquire)

    def _tell(self, call: Callable[[Primitive], object], lock: Primitive) -> None:
        try:
            call(lock)
        except Exception as error:  # noqa: BLE001 - the program's own work goes on
            self._failed(error)

    def _note(self, lock: Primitive) -> None:
        task = _current_task()
        if task is not None:
            outermost = getattr(task.get_coro(), "cr_code", None)
            frames = noted(sys._getframe(3), lambda frame: frame.f_code is outermost)
            note = Acquisition(weakref.ref(task), task.get_name(), frames)
            self._notes.setdefault(lock, []).append(note)
            del self._notes[lock][:-_NOTES_MAX]

    def _forget(self, lock: Primitive) -> None:
        """Of the releasing task's acquisitions the last; without one, the oldest of all."""
        notes = self._notes.get(lock)
        if notes:
            task = _current_task()
            own = [note for note in notes if note.task() is task]
            notes.remove(own[-1] if own else notes[0])
            if not notes:
                del self._notes[lock]


def _as_coroutine_function(function: Any) -> Any:
    """For those that ask `inspect`, which can be told so from 3.12 on."""
    mark = getattr(inspect, "markcoroutinefunction", None)
    return function if mark is None else mark(function)


def _current_task() -> asyncio.Task[Any] | None:
    """None, too, where no loop runs: a permit may be taken and given back there."""
    return None if asyncio._get_running_loop() is None else asyncio.current_task()


def _by_block(frame: FrameType | None) -> bool:
    """Whether the library calls for an `async with`, or gives back what a cancelled `acquire()` was given."""
    while frame is not None and is_plumbing(frame.f_code):
        if frame.f_code.co_name in _BLOCK or frame.f_code in ACQUIRES:
            return True
        frame = frame.f_back
    return False


def _leaving(release: Any) -> Any:
    """Past the hook in `release`: what was entered left no note."""

    async def __aexit__(self: Any, _kind: Any, _error: Any, _trace: Any) -> None:  # noqa: N807 - its name
        if type(self) in _UNCHANGED:
            release(self)
        else:
            self.release()

    return __aexit__
