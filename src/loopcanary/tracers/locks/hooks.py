"""What is put into the locks of asyncio and anyio: a word when one has to be waited for, and a note of each
`acquire()`.

`async with lock` needs no note: while its block runs, the lock's `__aexit__` lies on the coroutine's value
stack, where it is found.
"""

from __future__ import annotations

import asyncio
import sys
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from types import CodeType, FrameType
from typing import Any

from loopcanary.late_dataclass import dataclass
from loopcanary.patches import Patches
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
from loopcanary.whose_exception import ours

PLAIN: tuple[type[Any], ...] = (asyncio.Lock, asyncio.Semaphore, asyncio.BoundedSemaphore)
"""Of other classes below these the program may have changed what acquires."""
FOLDERS.append(__file__)
_NOTES_MAX = 64
_BLOCK = ("__aenter__", "__aexit__")
_WAIT = "wait"
_MADE = "_loopcanary_made"
_CONSTRUCTORS = ("__init__", "__post_init__", "__new__")


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Acquisition:
    """An `acquire()` without `async with`."""

    task: weakref.ref[Any]
    name: str
    frames: Places


class LockHooks:
    """The hooks in the classes. They stay callable when they are taken out: the program may have kept
    one, as each Condition does."""

    def __init__(
        self,
        contended: Callable[[Primitive], object],
        failed: Callable[[Exception], object],
        begins: Callable[[Any], object],
    ) -> None:
        """`contended`: called on the loop's thread when a task is about to wait; `failed`: with what a hook
        of ours raised; it takes them out; `begins`: with a loop of asyncio that is about to run."""
        self._contended = contended
        self._begins = begins
        self._failed = failed
        self._is_on = False
        self._notes: weakref.WeakKeyDictionary[Primitive, list[Acquisition]] = weakref.WeakKeyDictionary()
        self._aside: weakref.WeakKeyDictionary[Any, Acquisition] = weakref.WeakKeyDictionary()
        """By task: of a lock that a Condition has released while it waits for news."""
        self._patches = Patches()

    def notes(self, lock: Primitive) -> tuple[Acquisition, ...]:
        """Those that were not released yet, the oldest first."""
        return tuple(self._notes.get(lock, ()))

    def put_in(self) -> None:
        """Puts the hooks in. The thread that starts the engine."""
        self._is_on = True
        self.put_in_loop(asyncio.BaseEventLoop)
        self._put_in_lock(asyncio.Lock, self._entering_lock(asyncio.Lock))
        self._put_in_lock(asyncio.Semaphore, self._entering_semaphore(PLAIN[1:]))

    def put_in_loop(self, kind: Any) -> None:
        """When the program has loaded this class. Any thread."""
        if self._is_on:
            self._patches.lay(kind, "run_forever", self._running(kind.run_forever))

    def put_in_anyio(self, backend: Any) -> None:
        """When the program has loaded it. Any thread."""
        if not self._is_on or not know_anyio(backend):
            return
        limiter, name = backend.CapacityLimiter, "acquire_on_behalf_of"
        self._patches.lay(limiter, name, self._telling(getattr(limiter, name), self._if_taken))
        for kind, entering in (
            (backend.Lock, self._entering_anyio_lock(backend.Lock)),
            (backend.Semaphore, self._entering_anyio_semaphore(backend.Semaphore)),
        ):
            self._put_in_lock(kind, entering)
            self._patches.lay(kind, "acquire_nowait", self._noting_at_once(kind.acquire_nowait))

    def put_in_trio(self, sync: Any, contended: Callable[[Primitive], object]) -> None:
        """When the program has loaded it. Any thread. `contended`: as that of asyncio; acquisitions are not
        noted: a lock knows its task, and from 0.27 on trio wakes those in line when that has ended."""

        def if_taken(lock: Primitive) -> None:
            if is_taken(lock):
                contended(lock)

        for kind, name in know_trio(sync) if self._is_on else ():
            self._patches.lay(kind, name, self._telling(getattr(kind, name), if_taken))

    def take_out(self) -> None:
        """Any thread. What the program has put over a hook stays."""
        self._is_on = False
        self._patches.take_back()
        self._notes.clear()

    def _put_in_lock(self, kind: Any, entering: Any) -> None:
        acquire, release, enter, leave = kind.acquire, kind.release, kind.__aenter__, kind.__aexit__
        self._patches.lay(kind, "__init__", self._making(kind.__init__))
        self._patches.lay(kind, "acquire", self._noting(acquire))
        self._patches.lay(kind, "release", self._releasing(release))
        self._patches.lay(kind, "__aenter__", wraps(enter)(entering))
        self._patches.lay(kind, "__aexit__", wraps(leave)(_leaving(kind, release)))

    def _making(self, original: Any) -> Any:
        @wraps(original)
        def __init__(lock: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - its name
            original(lock, *args, **kwargs)
            if self._is_on:
                self._tell(_note_made, lock)

        return __init__

    def _running(self, original: Any) -> Any:
        @wraps(original)
        def run_forever(loop: Any) -> Any:
            if self._is_on and not loop.is_running() and not loop.is_closed():
                self._tell(self._begins, loop)
            return original(loop)

        return run_forever

    def _noting(self, original: Any) -> Any:
        @wraps(original)
        async def acquire(lock: Any) -> Any:
            if self._is_on:
                self._tell(self._if_taken, lock)
            result = await original(lock)
            if self._is_on:
                why = _why(sys._getframe(1))
                if why == _WAIT:
                    self._tell(self._take_back, lock)
                elif not why:
                    self._tell(self._note, lock)
            return result

        return acquire

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
            if self._notes:
                why = _why(sys._getframe(1))
                if why == _WAIT:
                    self._tell(self._set_aside, lock)
                elif not why:
                    self._tell(self._forget, lock)
            return original(lock)

        return release

    def _entering_lock(self, kind: Any) -> Any:
        """No coroutine of its own: it costs less than the original, which pays for the test. What it leaves
        out is the note, and that `as` gives None: it is True."""
        acquire, original = kind.acquire, kind.__aenter__

        def __aenter__(self_: Any) -> Any:  # noqa: N807 - its name
            if type(self_) is not kind:
                return original(self_)
            if self_._locked:
                self._tell(self._contended, self_)
            return acquire(self_)

        return __aenter__

    def _entering_anyio_lock(self, kind: Any) -> Any:
        """As of a lock; `as` gives None."""
        acquire, original = kind.acquire, kind.__aenter__

        def __aenter__(self_: Any) -> Any:  # noqa: N807 - its name
            if type(self_) is not kind:
                return original(self_)
            if self_._owner_task is not None:
                self._tell(self._contended, self_)
            return acquire(self_)

        return __aenter__

    def _entering_anyio_semaphore(self, kind: Any) -> Any:
        """`as` gives the semaphore, so it is a coroutine, as the original."""
        acquire, original = kind.acquire, kind.__aenter__

        async def __aenter__(self_: Any) -> Any:  # noqa: N807 - its name
            if type(self_) is not kind:
                return await original(self_)
            if not self_._value:
                self._tell(self._contended, self_)
            await acquire(self_)
            return self_

        return __aenter__

    def _entering_semaphore(self, kinds: tuple[Any, ...]) -> Any:
        """As of a lock. `kinds`: the plain ones, which acquire as the first does."""
        acquire, original = kinds[0].acquire, kinds[0].__aenter__

        def __aenter__(self_: Any) -> Any:  # noqa: N807 - its name
            if type(self_) not in kinds:
                return original(self_)
            if not self_._value:
                self._tell(self._contended, self_)
            return acquire(self_)

        return __aenter__

    def _telling(self, original: Any, call: Callable[[Primitive], object]) -> Any:
        @wraps(original)
        async def acquire(lock: Any, *args: Any, **kwargs: Any) -> Any:
            if self._is_on:
                self._tell(call, lock)
            return await original(lock, *args, **kwargs)

        return acquire

    def _if_taken(self, lock: Primitive) -> None:
        if is_taken(lock):
            self._contended(lock)

    def _tell(self, call: Callable[[Primitive], object], lock: Primitive) -> None:
        try:
            call(lock)
        except ours() as error:  # the program's own work goes on
            self._failed(error)

    def _note(self, lock: Primitive) -> None:
        task = _current_task()
        if task is not None:
            outermost = getattr(task.get_coro(), "cr_code", None)
            if sys._getframe(2).f_code is outermost:
                return  # `wait_for(lock.acquire(), 5)` of 3.11: a task that only acquires, for another one
            frames = noted(sys._getframe(3), lambda frame: frame.f_code is outermost)
            note = Acquisition(weakref.ref(task), task.get_name(), frames)
            self._notes.setdefault(lock, []).append(note)
            del self._notes[lock][:-_NOTES_MAX]

    def _forget(self, lock: Primitive) -> None:
        """Removes the last acquisition of the releasing task; if it has none, the oldest of all."""
        notes = self._notes.get(lock)
        if notes:
            self._remove(lock, self._own(lock) or notes[0])

    def _own(self, lock: Primitive) -> Acquisition | None:
        task = _current_task()
        own = [note for note in self._notes.get(lock, ()) if note.task() is task]
        return own[-1] if own else None

    def _remove(self, lock: Primitive, note: Acquisition) -> None:
        self._notes[lock].remove(note)
        if not self._notes[lock]:
            del self._notes[lock]

    def _set_aside(self, lock: Primitive) -> None:
        """Notes that a Condition releases the lock for a while."""
        own, task = self._own(lock), _current_task()
        if own is not None and task is not None:
            self._remove(lock, own)
            self._aside[task] = own

    def _take_back(self, lock: Primitive) -> None:
        """Notes that a Condition has acquired the lock again."""
        task = _current_task()
        own = None if task is None else self._aside.pop(task, None)
        if own is not None:
            self._notes.setdefault(lock, []).append(own)


class _Made(tuple[tuple[CodeType, int], ...]):
    """Copies of a lock, and those that are pickled, were made elsewhere; code cannot be pickled."""

    __slots__ = ()

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return tuple, ()


def made(lock: Primitive) -> Places:
    """Where it was made: constructors, and who called them. Empty where the hooks were not there yet."""
    places: Places = getattr(lock, "__dict__", {}).get(_MADE, ())
    return places


def _note_made(lock: Primitive) -> None:
    """In the lock: a weak reference to it would count as a way to it (lost.py)."""
    frame: FrameType | None = sys._getframe(3)
    while frame is not None and is_plumbing(frame.f_code):  # a Condition makes a lock of its own
        frame = frame.f_back
    with suppress(AttributeError):  # a class to come may have slots
        object.__setattr__(lock, _MADE, _Made(noted(frame, _is_no_constructor)))


def _is_no_constructor(frame: FrameType) -> bool:
    return frame.f_code.co_name not in _CONSTRUCTORS


def _current_task() -> asyncio.Task[Any] | None:
    """None, too, where no loop runs: a permit may be taken and given back there."""
    return None if asyncio._get_running_loop() is None else asyncio.current_task()


def _why(frame: FrameType | None) -> str:
    """The method of the library that calls: `__aenter__` or `__aexit__` of a block, `wait` of a Condition,
    `acquire` that gives back what it was given when it was cancelled. Empty: the program calls."""
    while frame is not None and is_plumbing(frame.f_code):
        name = frame.f_code.co_name
        if name in _BLOCK or name == _WAIT:
            return name
        if frame.f_code in ACQUIRES:
            return "acquire"
        frame = frame.f_back
    return ""


def _leaving(kind: Any, release: Any) -> Any:
    """Past the hook in `release`: what was entered left no note. A subclass may release in another way. The
    parameters are those of the original: `*args` would cost 7 % of a block."""

    async def of_asyncio(self: Any, exc_type: Any, exc: Any, tb: Any) -> None:  # noqa: ARG001
        if type(self) is kind:
            release(self)
        else:
            self.release()

    async def of_anyio(self: Any, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:  # noqa: ARG001
        if type(self) is kind:
            release(self)
        else:
            self.release()

    return of_asyncio if kind in PLAIN else of_anyio
