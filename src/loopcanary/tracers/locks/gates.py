"""Gates: locks that a task acquires, and something else releases, on purpose. Told by the code, before a lock
of which only an `acquire()` is known is said to be held for ever."""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from inspect import CO_COROUTINE
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from loopcanary.tracers.locks.primitives import Primitive, is_plumbing
from loopcanary.tracers.places import Places

RELEASE = "release"
_HAS_METHOD_BIT = sys.version_info >= (3, 12)
"""A bit of LOAD_ATTR says that what it loads is called; before 3.12 that was an instruction of its own."""


def may_be_gate(acquired: Iterable[Places]) -> bool:
    """Whether code that acquired a lock, or a function or class of its module that it names, gives `release`
    to others: to a timer, a Future, a thread."""
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
