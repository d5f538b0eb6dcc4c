"""Coroutines of suspended tasks: which there are, what they hold. Nothing of the program's is called.

To be called on the loop's own thread, where all other tasks of the loop are suspended.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from types import (
    AsyncGeneratorType,
    CellType,
    CodeType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    MethodType,
    ModuleType,
)
from typing import Any

from loopcanary.tracers.locks.primitives import (
    ACQUIRES,
    Primitive,
    inside,
    is_plumbing,
    is_primitive,
    wrappers,
)

_DEPTH_MAX = 200
_ATTRIBUTES_MAX = 1_000
_OPAQUE = frozenset((ModuleType, FunctionType, CodeType, type, str, int, float, bytes))
_NESTED_MAX = 5
_EXIT = "__aexit__"
_RELEASE = "release"
_RUNS = "_run_coro"
"""The method of anyio's TaskHandle that a task runs."""


def coroutines(outermost: Any) -> list[Any]:
    found: list[Any] = []
    one = outermost
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


def frames(outermost: Any) -> list[FrameType]:
    """The frames of its coroutines, the innermost first."""
    return [frame for one in reversed(coroutines(outermost)) if (frame := _frame(one)) is not None]


def runs(outermost: Any, handle: Any) -> bool:
    """Whether it is the task that anyio gave this handle for."""
    return any(
        getattr(code_of(one), "co_name", None) == _RUNS and local(one, "self") is handle
        for one in coroutines(outermost)
    )


def knows(outermost: Any, lock: Any) -> bool:
    """Whether a local of its coroutines is the lock, or an object with the lock as an attribute. Or whatever
    else it is, such as a scope."""
    around = wrappers()
    return any(
        one is lock
        or (type(one) in around and inside(one) is lock)
        or (type(one) not in _OPAQUE and _has(one, lock, around))
        for coroutine in coroutines(outermost)
        for local in gc.get_referents(coroutine)
        for one in (gc.get_referents(local) if type(local) is CellType else (local,))
    )


def may_release(outermost: Any) -> bool:
    """Whether the program's code that its coroutines are in, or functions and methods that it calls by name,
    speak of `release`."""
    return any(
        _RELEASE in code.co_names
        for frame in frames(outermost)
        if not is_plumbing(frame.f_code)
        for code in (frame.f_code, *_called(frame))
    )


def _called(frame: FrameType) -> Iterator[CodeType]:
    """Code of the functions of its module, and of methods of its local objects, that the frame names."""
    kinds = {type(one) for one in frame.f_locals.values() if type(one) not in _OPAQUE}
    places = [frame.f_globals, *(vars(each) for kind in kinds for each in kind.__mro__[:-1])]
    for place in places:
        for name in frame.f_code.co_names:
            found = place.get(name)
            if type(found) is FunctionType and not is_plumbing(found.__code__):
                yield found.__code__


def held(chain: Sequence[Any], lock: Primitive | None, released: Primitive | None) -> tuple[Primitive, ...]:
    """What a task with these coroutines has entered by `async with`, the outermost first.

    `lock`: what it waits for; `released`: what it has given back meanwhile, though its block is open.
    """
    seen = set(map(id, chain))
    found = [one for each in chain for one in _entered(each, seen, _NESTED_MAX) if one is not released]
    if lock is not None and _is_entering(chain):
        # The exit of the block that it is about to enter lies there, too: the innermost one.
        last = max((index for index, one in enumerate(found) if one is lock), default=None)
        if last is not None:
            del found[last]
    return tuple(found)


def _has(one: Any, lock: Any, around: Mapping[type[Any], str]) -> bool:
    for held in gc.get_referents(one):
        if held is lock or (type(held) in around and inside(held) is lock):
            return True
        values = held.values() if type(held) is dict and len(held) < _ATTRIBUTES_MAX else ()
        if any(v is lock or (type(v) in around and inside(v) is lock) for v in values):
            return True
    return False


def _is_entering(chain: Sequence[Any]) -> bool:
    """Whether it waits for a lock at an `async with`, and not in a call of `acquire()`."""
    is_direct = True  # our hook of `__aenter__` is not a coroutine: nothing is left of it
    for one in reversed(chain):
        code = code_of(one)
        if code is None or code in ACQUIRES:
            continue
        if code.co_name == "__aenter__":
            return True
        if not is_plumbing(code):
            break
        is_direct = False
    return is_direct


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
    if is_primitive(manager) or is_primitive(manager := inside(manager)):
        yield manager
    elif issubclass(type(manager), asyncio.Condition):
        yield manager._lock
    elif depth and issubclass(type(manager), AsyncExitStack):
        for _, callback in tuple(manager._exit_callbacks):
            if type(callback) is MethodType:
                yield from _exits(callback.__self__, seen, depth - 1)
    elif type(generator := _generator_of(manager)) is AsyncGeneratorType:
        yield from _within(generator, seen, depth)


def _within(generator: Any, seen: set[int], depth: int) -> Iterator[Primitive]:
    if depth and id(generator) not in seen:
        seen.add(id(generator))
        yield from _entered(generator, seen, depth - 1)


def _generator_of(manager: Any) -> Any:
    """The generator of a manager that `contextlib.asynccontextmanager` has made; None for others."""
    own = getattr(type(manager), "__module__", None) == "contextlib" and getattr(manager, "__dict__", None)
    return own.get("gen") if own else None


def code_in(code: CodeType, name: str) -> Iterator[CodeType]:
    """The code of the functions with this name that the code makes."""
    return (one for one in code.co_consts if isinstance(one, CodeType) and one.co_name == name)


def code_of(one: Any) -> CodeType | None:
    """The code of a coroutine or generator."""
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


def local(one: Any, name: str) -> Any:
    """A local variable of a coroutine or generator; None: there is none."""
    frame = _frame(one)
    return None if frame is None else frame.f_locals.get(name)
