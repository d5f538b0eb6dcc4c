"""What a suspended task holds and waits for, read from its coroutines. Nothing of the program's is called.

To be called on the loop's own thread, where all other tasks of the loop are suspended.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from types import (
    AsyncGeneratorType,
    CodeType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    MethodType,
    ModuleType,
)
from typing import Any

from loopcanary.tracers.locks.hooks import HOOKS_FILE
from loopcanary.tracers.locks.primitives import (
    ACQUIRES,
    GROUP_EXITS,
    Primitive,
    inside,
    is_plumbing,
    is_primitive,
)

_DEPTH_MAX = 200
_ATTRIBUTES_MAX = 1_000
_OPAQUE = frozenset((ModuleType, FunctionType, CodeType, type, str, int, float, bytes))
_NESTED_MAX = 5
_EXIT = "__aexit__"
_CONDITION_WAIT = asyncio.Condition.wait.__code__
_WAIT = asyncio.tasks._wait.__code__  # type: ignore[attr-defined]
_WAIT_FOR = asyncio.wait_for.__code__
_GATHERING = asyncio.tasks._GatheringFuture  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class TaskView:
    """A task of the loop, suspended."""

    task: asyncio.Task[Any]
    future: Any
    """What wakes it; the same object while it has not run. None: it is ready to run."""
    lock: Primitive | None
    """What it waits for."""
    tasks: tuple[asyncio.Future[Any], ...]
    """Tasks and futures all of which have to end before it goes on; those that have not ended."""
    holds: tuple[Primitive, ...]
    """What it has entered by `async with`, the outermost first."""


def view_of(task: asyncio.Task[Any]) -> TaskView:
    """See TaskView."""
    chain = coroutines(task)
    lock, tasks = _waits(task, chain)
    released = _in_condition(chain)
    seen = set(map(id, chain))
    holds = [one for each in chain for one in _entered(each, seen, _NESTED_MAX) if one is not released]
    if lock is not None and _is_entering(chain):
        # The exit of the block that it is about to enter lies there, too: the innermost one.
        last = max((index for index, one in enumerate(holds) if one is lock), default=None)
        if last is not None:
            del holds[last]
    return TaskView(
        task=task, future=getattr(task, "_fut_waiter", None), lock=lock, tasks=tasks, holds=tuple(holds)
    )


def coroutines(task: asyncio.Task[Any]) -> list[Any]:
    """Its coroutines and generators, the outermost first."""
    found: list[Any] = []
    one: Any = task.get_coro()
    while one is not None and len(found) < _DEPTH_MAX:
        kind = type(one)
        if kind is CoroutineType:
            found.append(one)
            one = one.cr_await
        elif kind is AsyncGeneratorType:
            found.append(one)
            one = one.ag_await
        elif kind is GeneratorType:
            found.append(one)
            one = one.gi_yieldfrom
        elif kind.__module__ == "_asyncio":  # a future
            break
        elif kind.__module__ == "builtins":  # what `anext` gives knows its generator
            one = next((of for of in gc.get_referents(one) if type(of) is AsyncGeneratorType), None)
        elif isinstance(one, Coroutine):  # such as Cython's
            found.append(one)
            one = getattr(one, "cr_await", None)
        else:
            break
    return found


def frames(task: asyncio.Task[Any]) -> list[FrameType]:
    """Of its coroutines, the innermost first."""
    return [frame for one in reversed(coroutines(task)) if (frame := _frame(one)) is not None]


def knows(task: asyncio.Task[Any], lock: Primitive) -> bool:
    """Whether a local of its coroutines is the lock, or an object with the lock as an attribute."""
    return any(
        one is lock or (type(one) not in _OPAQUE and _has(one, lock))
        for coroutine in coroutines(task)
        for one in gc.get_referents(coroutine)
    )


def releases(callback: Any, lock: Primitive) -> bool:
    """Whether a callback may release it: a method of the lock, or a function that calls some `release`."""
    if isinstance(callback, partial):
        callback = callback.func
    if isinstance(callback, MethodType):
        if callback.__self__ is lock:
            return True
        callback = callback.__func__
    return isinstance(callback, FunctionType) and "release" in callback.__code__.co_names


def _has(one: Any, lock: Primitive) -> bool:
    for held in gc.get_referents(one):
        if held is lock:
            return True
        if type(held) is dict and len(held) < _ATTRIBUTES_MAX and any(v is lock for v in held.values()):
            return True
    return False


def _waits(
    task: asyncio.Task[Any], chain: list[Any]
) -> tuple[Primitive | None, tuple[asyncio.Future[Any], ...]]:
    for one in reversed(chain):
        code = _code(one)
        if code in ACQUIRES:
            return _local(one, "self"), ()
        if code is _WAIT:
            is_all = _local(one, "return_when") == asyncio.ALL_COMPLETED
            return None, _open(_local(one, "fs")) if is_all else ()
        if code in GROUP_EXITS:
            return None, _open(_local(one, "self")._tasks)
        if code is _WAIT_FOR and isinstance(inner := _local(one, "fut"), asyncio.Future):
            return None, _open((inner,))
    future = getattr(task, "_fut_waiter", None)
    if isinstance(future, _GATHERING):
        return None, _open(future._children)
    return None, _open((future,)) if isinstance(future, asyncio.Task) else ()


def _is_entering(chain: list[Any]) -> bool:
    """Whether it waits for a lock at an `async with`, and not in a call of `acquire()`."""
    codes = [code for one in chain if (code := _code(one)) is not None and code not in ACQUIRES]
    if not codes or codes[-1].co_filename != HOOKS_FILE:
        return True
    # Between the call and our hook may lie what asyncio and anyio have around it.
    caller = next((n for n in range(len(codes) - 2, -1, -1) if not is_plumbing(codes[n])), 0)
    return any(code.co_name == "__aenter__" for code in codes[caller:])


def _open(futures: Any) -> tuple[asyncio.Future[Any], ...]:
    return tuple(one for one in tuple(futures or ()) if not one.done())


def _in_condition(chain: list[Any]) -> Primitive | None:
    """The lock of the condition that it waits for: released meanwhile, though its block is open."""
    for one in reversed(chain):
        if _code(one) is _CONDITION_WAIT:
            condition = _local(one, "self")
            return getattr(condition, "_lock", None)
    return None


def _entered(coroutine: Any, seen: set[int], depth: int) -> Iterator[Primitive]:
    """Locks whose `async with` block is open in it: their exit lies on its value stack. As a method, or from
    CPython 3.14 on as a function and then the lock. `seen`: ids of generators that are looked at by
    themselves."""
    before: Any = None
    for one in gc.get_referents(coroutine):
        if type(one) is MethodType and one.__name__ == _EXIT:
            yield from _exits(one.__self__, seen, depth)
        elif type(one) is AsyncExitStack or (type(before) is FunctionType and before.__name__ == _EXIT):
            yield from _exits(one, seen, depth)
        elif type(one) is AsyncGeneratorType:
            yield from _within(one, seen, depth)
        before = one


def _exits(manager: Any, seen: set[int], depth: int) -> Iterator[Primitive]:
    """Locks that are released when this context manager is left."""
    if is_primitive(lock := inside(manager)):
        yield lock
    elif isinstance(manager, asyncio.Condition):
        yield manager._lock  # type: ignore[attr-defined]
    elif depth and isinstance(manager, AsyncExitStack):
        for _, callback in tuple(manager._exit_callbacks):  # type: ignore[attr-defined]
            if type(callback) is MethodType:
                yield from _exits(callback.__self__, seen, depth - 1)
    elif isinstance(generator := _generator_of(manager), AsyncGeneratorType):
        yield from _within(generator, seen, depth)


def _within(generator: Any, seen: set[int], depth: int) -> Iterator[Primitive]:
    if depth and id(generator) not in seen:
        seen.add(id(generator))
        yield from _entered(generator, seen, depth - 1)


def _generator_of(manager: Any) -> Any:
    """Of `contextlib.asynccontextmanager`."""
    own = getattr(type(manager), "__module__", None) == "contextlib" and getattr(manager, "__dict__", None)
    return own.get("gen") if own else None


def _code(one: Any) -> CodeType | None:
    kind = type(one)
    if kind is CoroutineType:
        return one.cr_code  # type: ignore[no-any-return]
    code = getattr(one, "ag_code" if kind is AsyncGeneratorType else "gi_code", None)
    return code if type(code) is CodeType else None


def _frame(one: Any) -> FrameType | None:
    for name in ("cr_frame", "gi_frame", "ag_frame"):
        frame = getattr(one, name, None)
        if frame is not None:
            return frame  # type: ignore[no-any-return]
    return None


def _local(one: Any, name: str) -> Any:
    frame = _frame(one)
    return None if frame is None else frame.f_locals.get(name)
