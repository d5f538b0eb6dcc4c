"""The locks between tasks that are looked at: asyncio's, trio's, and those of anyio on asyncio. (On trio,
anyio's are around trio's.)

Those of a library are known once the program has loaded it. Some say which tasks hold them; of all others
that is found out.
"""

from __future__ import annotations

import asyncio
import dis
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache, partial
from inspect import CO_COROUTINE, unwrap
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, TypeAlias

from loopcanary.late_dataclass import dataclass
from loopcanary.tracers.places import Places
from loopcanary.whose_exception import ours

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
        """All types of these three kinds."""
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
    except ours():  # what a library to come may raise
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


RELEASE = "release"
_HAS_METHOD_BIT = sys.version_info >= (3, 12)
"""A bit of LOAD_ATTR says that what it loads is called; before 3.12 that was an instruction of its own."""


def may_be_gate(acquired: Iterable[Places]) -> bool:
    """Whether a lock is a gate, which a task acquires, and something else releases, on purpose: asked before
    one of which only an `acquire()` is known is said to be held for ever. Whether code that acquired it, or a
    function or class of its module that it names, gives `release` to others: to a timer, a Future, a
    thread."""
    codes = {code for places in acquired for code, _ in places if not is_plumbing(code)}
    return any(map(_gives_away, codes)) or any(map(_gives_away, _named(codes)))


def releases(callback: Any, lock: Primitive) -> bool:
    """Whether a callback may release it: a method of the lock, or a function that calls some `release`."""
    if type(callback) is partial:
        callback = callback.func
    if type(callback) is MethodType:
        if callback.__self__ is lock:
            return True
        callback = callback.__func__
    return type(callback) is FunctionType and RELEASE in callback.__code__.co_names


def _gives_away(code: CodeType) -> bool:
    """It makes a function that speaks of `release`, or has a `release` that it does not call there."""
    inner = [one for one in code.co_consts if type(one) is CodeType and not one.co_flags & CO_COROUTINE]
    if any(RELEASE in one.co_names or _gives_away(one) for one in inner):
        return True
    return RELEASE in code.co_names and any(map(_is_uncalled, dis.get_instructions(code)))


def _is_uncalled(instruction: dis.Instruction) -> bool:
    if instruction.opname != "LOAD_ATTR" or instruction.argval != RELEASE:
        return False
    return not (_HAS_METHOD_BIT and (instruction.arg or 0) & 1)


def _named(codes: Iterable[CodeType]) -> Iterator[CodeType]:
    by_file: dict[str, set[str]] = {}
    for code in codes:
        by_file.setdefault(code.co_filename, set()).update(code.co_names)
    for module in tuple(sys.modules.values()):
        place = module.__dict__ if type(module) is ModuleType else {}
        for name in by_file.get(place.get("__file__") or "", ()):
            found = place.get(name)
            for one in tuple(vars(found).values()) if type(found) is type else (found,):
                if type(one) is FunctionType:
                    yield one.__code__
