"""The locks between tasks that are looked at: asyncio's, trio's, and those of anyio on asyncio. (On trio,
anyio's are around trio's.)

Those of a library are known once the program has loaded it. Some say which tasks hold them; of all others
that is found out.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from functools import lru_cache
from inspect import unwrap
from types import CodeType
from typing import Any, TypeAlias

from loopcanary.late_dataclass import dataclass

Primitive: TypeAlias = Any
"""A Lock, a Semaphore or a CapacityLimiter."""
ANYIO = "anyio._backends._asyncio"
TRIO = "trio._sync"
_CORE, _ON_TRIO = "anyio._core._synchronization", "anyio._backends._trio"
_AROUND = (
    (_CORE, "LockAdapter", "_internal_lock"),
    (_CORE, "SemaphoreAdapter", "_internal_semaphore"),
    (_CORE, "CapacityLimiterAdapter", "_internal_limiter"),
    (_ON_TRIO, "Lock", "_Lock__original"),
    (_ON_TRIO, "Semaphore", "_Semaphore__original"),
    (_ON_TRIO, "CapacityLimiter", "_CapacityLimiter__original"),
)
"""What anyio has around a lock: class, and where the lock is. Of those that were made before a loop ran, and
of trio's."""

ACQUIRES: set[CodeType] = {asyncio.Lock.acquire.__code__, asyncio.Semaphore.acquire.__code__}
"""The code that waits."""
GROUP_EXITS: set[CodeType] = {asyncio.TaskGroup.__aexit__.__code__}
"""The code that waits for a group's tasks."""
STARTS: set[CodeType] = set()
"""The code that waits until a group's new task says that it has started."""
HANDLES: set[CodeType] = set()
"""The code of anyio's TaskHandle that waits for its task."""
THREAD_WAITS: dict[CodeType, str] = {}
"""The code in which a thread waits, and the local that is what for."""
THREAD_WORKS: dict[CodeType, str] = {}
"""The code in which a thread works, and the local that is what for: a Future for which a task waits."""
_PRIMITIVES: list[type[Any]] = [asyncio.Lock, asyncio.Semaphore]
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
    which made them of events, or a later one of which we do not know how they are made."""
    if not hasattr(backend, "Lock") or not _is_made_as_known(backend):
        return False
    if not _anyio.locks:
        _anyio.locks, _anyio.semaphores = (backend.Lock,), (backend.Semaphore,)
        _anyio.limiters = (backend.CapacityLimiter,)
        ACQUIRES.add(backend.CapacityLimiter.acquire_on_behalf_of.__code__)
        ACQUIRES.update(kind.acquire.__code__ for kind in (backend.Lock, backend.Semaphore))
        GROUP_EXITS.add(backend.TaskGroup.__aexit__.__code__)
        STARTS.add(backend.TaskGroup.start.__code__)
        THREAD_WORKS[backend.WorkerThread.run.__code__] = "future"
        know_handles()
        _PRIMITIVES.extend(_anyio.all)
        FOLDERS.append(backend.__file__.rpartition("_backends")[0])
    return True


def _is_made_as_known(backend: Any) -> bool:
    try:
        lock, permits, limiter = backend.Lock(), backend.Semaphore(1), backend.CapacityLimiter(1)
    except Exception:  # noqa: BLE001 - what a library to come may raise
        return False
    fields = (
        (lock, "_owner_task _waiters"),
        (permits, "_value _waiters"),
        (limiter, "_borrowers _wait_queue"),
    )
    return all(hasattr(one, name) for one, names in fields for name in names.split())


def know_handles() -> None:
    """Those of anyio, from 4.14 on, where the program has loaded it."""
    kind = getattr(sys.modules.get("anyio._core._tasks"), "TaskHandle", None)
    if kind is not None:
        HANDLES.update((kind.wait.__code__, kind.__await__.__code__))


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
        _PRIMITIVES.extend(_trio.all)
        FOLDERS.append(sync.__file__.rpartition("_sync")[0])
    return waits


def is_plumbing(code: CodeType) -> bool:
    """Whether it is code of a loop, or a hook of ours."""
    return _is_in_folders(code.co_filename, len(FOLDERS))


@lru_cache(1_000)
def _is_in_folders(file: str, known: int) -> bool:
    """`known`: of the folders, which become more."""
    return file.startswith(tuple(FOLDERS[:known]))


def is_primitive(one: Any) -> bool:
    """Whether it is one of them."""
    return issubclass(type(one), tuple(_PRIMITIVES))  # isinstance would ask the object for its __class__


def is_lock(lock: Primitive) -> bool:
    """Whether one task at most holds it."""
    return isinstance(lock, (asyncio.Lock, *_anyio.locks, *_trio.locks))


def is_taken(lock: Primitive) -> bool:
    """Whether it has to be waited for."""
    if isinstance(lock, (asyncio.Lock, asyncio.Semaphore)):
        return lock.locked()
    kind: Any = type(lock)
    if issubclass(kind, _anyio.locks):
        return lock._owner_task is not None
    if issubclass(kind, _anyio.semaphores) or issubclass(kind, _trio.semaphores):
        return bool(lock._value == 0)
    if issubclass(kind, _trio.locks):
        return lock._owner is not None
    return bool(lock.available_tokens <= 0)


def owners(lock: Primitive) -> tuple[Any, ...] | None:
    """The tasks that hold it, as the lock itself says; they may have ended. None: it does not say."""
    limiters: tuple[type[Any], ...] = (*_anyio.limiters, *_trio.limiters)
    if isinstance(lock, limiters):
        return tuple(lock._borrowers)
    if isinstance(lock, _anyio.locks):
        return () if lock._owner_task is None else (lock._owner_task,)
    if isinstance(lock, _trio.locks):
        return () if lock._owner is None else (lock._owner,)
    return None


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


def wrappers() -> Mapping[type[Any], str]:
    """Classes of what anyio has around a lock, each with the attribute that has the lock: those that are
    loaded by now."""
    found = ((getattr(sys.modules.get(module), kind, None), name) for module, kind, name in _AROUND)
    return {kind: name for kind, name in found if kind is not None}


def inside(one: Any) -> Any:
    """The lock in what anyio has around it; anything else as it is. Asks nothing of the object itself."""
    name = wrappers().get(type(one))
    held = None if name is None else getattr(one, name, None)
    return one if held is None else inside(held)
