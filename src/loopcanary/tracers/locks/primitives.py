"""The locks between tasks that are looked at: asyncio's, trio's, and those of anyio on asyncio. (On trio,
anyio's are around trio's.)

Those of a library are known once the program has loaded it. Some say which tasks hold them; of all others
that is found out.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from inspect import unwrap
from types import CodeType
from typing import Any, TypeAlias

Primitive: TypeAlias = Any
"""A Lock, a Semaphore or a CapacityLimiter."""
ANYIO = "anyio._backends._asyncio"
TRIO = "trio._sync"
_AROUND = {
    "anyio._core._synchronization": ("_internal_lock", "_internal_semaphore", "_internal_limiter"),
    "anyio._backends._trio": ("_Lock__original", "_Semaphore__original", "_CapacityLimiter__original"),
}
"""What anyio has around a lock: by module, where the lock is. Of those that were made before a loop ran, and
of trio's."""

ACQUIRES: set[CodeType] = {asyncio.Lock.acquire.__code__, asyncio.Semaphore.acquire.__code__}
"""The code that waits."""
GROUP_EXITS: set[CodeType] = {asyncio.TaskGroup.__aexit__.__code__}
"""The code that waits for a group's tasks."""
FOLDERS: list[str] = [asyncio.__file__.rpartition("__init__")[0]]
"""Where that code lies, and what is around it."""


@dataclass(slots=True)
class _Kinds:
    """The classes of a library that the program has loaded; none before."""

    locks: tuple[type[Any], ...] = ()
    semaphores: tuple[type[Any], ...] = ()
    limiters: tuple[type[Any], ...] = ()

    @property
    def all(self) -> tuple[type[Any], ...]:
        """Of these three."""
        return (*self.locks, *self.semaphores, *self.limiters)


_anyio, _trio = _Kinds(), _Kinds()


def know_anyio(backend: Any) -> bool:
    """Looks from now on at the locks of anyio's module for asyncio. False: this is a version before 4.5,
    which made them of events."""
    if not hasattr(backend, "Lock"):
        return False
    if not _anyio.locks:
        _anyio.locks, _anyio.semaphores = (backend.Lock,), (backend.Semaphore,)
        _anyio.limiters = (backend.CapacityLimiter,)
        ACQUIRES.add(backend.CapacityLimiter.acquire_on_behalf_of.__code__)
        ACQUIRES.update(kind.acquire.__code__ for kind in (backend.Lock, backend.Semaphore))
        GROUP_EXITS.add(backend.TaskGroup.__aexit__.__code__)
        FOLDERS.append(backend.__file__.rpartition("_backends")[0])
    return True


def know_trio(sync: Any) -> tuple[tuple[type[Any], str], ...]:
    """Looks from now on at the locks of this module of trio: each class, with the name of what waits."""
    waits = (
        (sync._LockImpl, "acquire"),
        (sync.Semaphore, "acquire"),
        (sync.CapacityLimiter, "acquire_on_behalf_of"),
    )
    if not _trio.locks:
        (_trio.locks, _trio.semaphores, _trio.limiters) = ((kind,) for kind, _ in waits)
        ACQUIRES.update(unwrap(getattr(kind, name)).__code__ for kind, name in waits)
        FOLDERS.append(sync.__file__.rpartition("_sync")[0])
    return waits


def is_plumbing(code: CodeType) -> bool:
    """Whether it is code of a loop, or a hook of ours."""
    return code.co_filename.startswith(tuple(FOLDERS))


def is_primitive(one: Any) -> bool:
    """Whether it is one of them."""
    return isinstance(one, (asyncio.Lock, asyncio.Semaphore, *_anyio.all, *_trio.all))


def is_lock(lock: Primitive) -> bool:
    """Whether one task at most holds it."""
    return isinstance(lock, (asyncio.Lock, *_anyio.locks, *_trio.locks))


def is_taken(lock: Primitive) -> bool:
    """Whether it has to be waited for."""
    semaphores: tuple[type[Any], ...] = (*_anyio.semaphores, *_trio.semaphores)
    if isinstance(lock, semaphores):
        return bool(lock._value == 0)
    limiters: tuple[type[Any], ...] = (*_anyio.limiters, *_trio.limiters)
    if isinstance(lock, limiters):
        return bool(lock.available_tokens <= 0)
    return bool(lock.locked())


def owners(lock: Primitive) -> tuple[Any, ...] | None:
    """The tasks that hold it, as the lock itself says; they may have ended. None: it does not say."""
    limiters: tuple[type[Any], ...] = (*_anyio.limiters, *_trio.limiters)
    if isinstance(lock, limiters):
        return tuple(lock._borrowers)
    if isinstance(lock, _anyio.locks):
        found = lock._owner_task
    elif isinstance(lock, _trio.locks):
        found = lock._owner
    else:
        return None
    return None if found is None else (found,)


def in_line(lock: Primitive) -> list[Any]:
    """The marks of the waits of those that are in line for it, the first first."""
    if isinstance(lock, _trio.all):
        return [mark for task in tuple(lock._lot._parked) if (mark := task._abort_func) is not None]
    if isinstance(lock, _anyio.limiters):
        futures = [future for event in tuple(lock._wait_queue.values()) for future in event._waiters]
    elif isinstance(lock, _anyio.locks):
        futures = [future for _, future in tuple(lock._waiters)]
    else:
        futures = [*(lock._waiters or ())]
    return [future for future in futures if not future.done()]


def inside(one: Any) -> Any:
    """The lock in what anyio has around it; anything else as it is."""
    names = _AROUND.get(type(one).__module__, ())
    held = next((held for name in names if (held := getattr(one, name, None)) is not None), None)
    return one if held is None else inside(held)
