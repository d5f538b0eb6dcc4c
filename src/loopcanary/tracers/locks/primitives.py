"""The locks between tasks that are looked at: asyncio's, and those of anyio on asyncio.

anyio's are known once the program has loaded them. An anyio Lock says which task holds it; of all others that
is found out.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from types import CodeType
from typing import Any, TypeAlias

Primitive: TypeAlias = Any
"""A Lock or a Semaphore."""
ANYIO = "anyio._backends._asyncio"
_ADAPTERS = "anyio._core._synchronization"
"""Of anyio's locks that were made before a loop ran: each holds one that a loop knows."""

ACQUIRES: set[CodeType] = {asyncio.Lock.acquire.__code__, asyncio.Semaphore.acquire.__code__}
"""The code that waits."""
GROUP_EXITS: set[CodeType] = {asyncio.TaskGroup.__aexit__.__code__}
"""The code that waits for a group's tasks."""
FOLDERS: list[str] = [asyncio.__file__.rpartition("__init__")[0]]
"""Where that code lies."""


@dataclass(slots=True)
class _Anyio:
    """Its classes; none while it is not loaded."""

    locks: tuple[type[Any], ...] = ()
    semaphores: tuple[type[Any], ...] = ()


_anyio = _Anyio()


def know_anyio(backend: Any) -> tuple[type[Any], ...]:
    """Looks from now on at the locks of anyio's module for asyncio: these classes. None of a version before
    4.5, which made its locks of events."""
    if not hasattr(backend, "Lock"):
        return ()
    kinds: tuple[type[Any], type[Any]] = (backend.Lock, backend.Semaphore)
    if backend.Lock not in _anyio.locks:
        ACQUIRES.update(kind.acquire.__code__ for kind in kinds)
        GROUP_EXITS.add(backend.TaskGroup.__aexit__.__code__)
        FOLDERS.append(backend.__file__.rpartition("_backends")[0])
        _anyio.locks += kinds[:1]
        _anyio.semaphores += kinds[1:]
    return kinds


def is_plumbing(code: CodeType) -> bool:
    """Whether it is code of asyncio or anyio."""
    return code.co_filename.startswith(tuple(FOLDERS))


def is_primitive(one: Any) -> bool:
    """Whether it is one of them."""
    return isinstance(one, (asyncio.Lock, asyncio.Semaphore, *_anyio.locks, *_anyio.semaphores))


def is_lock(lock: Primitive) -> bool:
    """Whether one task at most holds it."""
    return isinstance(lock, (asyncio.Lock, *_anyio.locks))


def is_taken(lock: Primitive) -> bool:
    """Whether it has to be waited for."""
    return lock._value == 0 if isinstance(lock, _anyio.semaphores) else bool(lock.locked())


def owner(lock: Primitive) -> asyncio.Task[Any] | None:
    """The task that holds it, as the lock itself says; it may have ended. None: it does not say."""
    found: asyncio.Task[Any] | None = lock._owner_task if isinstance(lock, _anyio.locks) else None
    return found


def in_line(lock: Primitive) -> list[Any]:
    """The futures of the tasks that wait for it, the first first."""
    waiters = tuple(lock._waiters or ())
    return [one[1] for one in waiters] if isinstance(lock, _anyio.locks) else list(waiters)


def inside(one: Any) -> Any:
    """The lock in an adapter of anyio's; anything else as it is."""
    if type(one).__module__ != _ADAPTERS:
        return one
    for name in ("_internal_lock", "_internal_semaphore"):
        held = getattr(one, name, None)
        if held is not None:
            return held
    return one
