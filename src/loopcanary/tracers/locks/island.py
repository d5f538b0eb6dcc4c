"""Which tasks nothing can wake any more: the main task, where only the loop's runner holds it, and what only
it holds.

The argument is the garbage collector's own. Of a set of objects, whichever, count the references that come
from within it, as `tp_traverse` shows them. An object that has more than these is reached from elsewhere: a
frame that runs, a timer, a transport, a module, another thread, memory of C. So is all that such an object
reaches. What is left would be garbage, but for the one reference that is left out: the runner's, to the task
that it runs until it is complete. Nothing that goes on can resume, cancel or feed what is left, and it stays
so: what nobody reaches nobody can reach again.

A reference that is not accounted for is one from elsewhere, so to stop early (objects that are many, large or
not looked into) makes the answer "something may reach it", and never the other one. What refers without a
reference is counted as reaching, too: a weak reference. And objects of a type in C that may be known to a
library by their address are not looked into.

References are counted in one call in C, in which no other thread runs.
"""

from __future__ import annotations

import asyncio
import builtins
import gc
import sys
import types
import weakref
from abc import ABCMeta
from collections import deque
from collections.abc import Generator, Sequence
from functools import lru_cache
from itertools import chain, islice
from operator import attrgetter
from types import (
    AsyncGeneratorType,
    CodeType,
    FunctionType,
    GeneratorType,
    ModuleType,
)
from typing import Any

from loopcanary.late_dataclass import dataclass
from loopcanary.tracers.locks.coroutines import coroutines
from loopcanary.tracers.locks.tasks import ours

OBJECTS_MAX = 2_000
_LENGTH_MAX = 500
"""Of a container: larger ones are not looked into."""
_ANALYSED_AT_ONCE = 100
_SIZED: Sequence[Any] = (list, tuple, dict, set, frozenset, deque)
_OPAQUE = (type, ModuleType, CodeType, asyncio.AbstractEventLoop, type(lru_cache(id)))
_HAS_INLINE_VALUES = sys.version_info >= (3, 13)
_GENERATORS = frozenset((GeneratorType, AsyncGeneratorType))
_KNOWN = frozenset(
    ("builtins", "types", "collections", "functools", "itertools", "_asyncio", "_contextvars", "_thread")
)
"""Modules whose types in C are known by their references only."""
_NAMESPACES = attrgetter("__globals__", "__builtins__")
"""Of a function."""
_CALLBACK = vars(weakref.ReferenceType)["__callback__"].__get__
_HEAP_TYPE = 1 << 9
_STATIC_BUILTIN = 1 << 1
"""Flags of types (Include/object.h)."""
_BUILT_IN = frozenset(
    (
        *(one for one in (*vars(builtins).values(), *vars(types).values()) if isinstance(one, type)),
        *map(type, (iter([]), iter(()), iter(""), iter(b""), iter(set()), iter(range(0)), reversed([]))),
        *map(type, ({}.keys(), {}.values(), {}.items(), iter({}), iter({}.values()), iter({}.items()))),
    )
)
"""Before 3.12, which has a flag for it."""
_POINTER_SIZE = 8
_ALONE = list(map(sys.getrefcount, [object()]))[0]  # noqa: RUF015 - counted as below
"""What `getrefcount` says of an object that only one list holds."""


@dataclass(frozen=True, slots=True)
class Island:
    """What only the runner's task reaches."""

    objects: Sequence[Any]
    edges: Sequence[Sequence[int]]
    """Indexes of the objects to which each refers."""
    lost: frozenset[int]
    """Indexes of the objects that nothing else reaches."""

    def reached_from(self, start: int) -> set[int]:
        """Indexes of what is lost and this one leads to, not by way of other tasks."""
        found, left = {start}, [start]
        while left:
            for one in self.edges[left.pop()]:
                if one in self.lost and one not in found:
                    found.add(one)
                    if not issubclass(type(self.objects[one]), asyncio.Future):
                        left.append(one)
        return found


def island(start: Any, forgiven: int) -> Generator[None, None, Island | None]:
    """Of a task; None: something else reaches it. In small steps.

    Args:
        start: The task. The caller may hold it once, for which `forgiven` counts as well.
        forgiven: How many references to it are those of its runner.
    """
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return None  # no call stops other threads
    objects = yield from _around(start)
    del start
    counted = _count(objects)
    if counted is None:
        return None
    yield
    counts, weak, referents = counted
    places = {id(one): place for place, one in enumerate(objects)}
    edges: list[list[int]] = []
    for one, held in zip(objects, referents, strict=True):
        edges.append(_edges(one, held, places))
        if not len(edges) % _ANALYSED_AT_ONCE:
            yield
    for place in chain.from_iterable(edges):
        counts[place] -= 1
    _add_inline_values(objects, edges, places)
    counts[0] -= forgiven
    if min(counts) < 0:
        return None  # a type in C shows what it does not hold
    # Who called the runner may hold these: what a task runs nobody else can resume.
    driven = {places.get(id(one), 0) for one in coroutines(objects[0].get_coro())} - {0}
    reached = yield from _known_elsewhere(objects, counts, weak)
    lost = frozenset(range(len(objects))) - _reached(edges, reached - driven, driven)
    return Island(objects, edges, lost) if 0 in lost else None


def _known_elsewhere(
    objects: Sequence[Any], counts: Sequence[int], weak: Sequence[int]
) -> Generator[None, None, set[int]]:
    """Indexes of those to which there are more references than those that were counted, or weak ones."""
    found = set()
    for place, one in enumerate(objects):
        if counts[place] > 0 or (weak[place] and weak[place] != _registered(one)):
            found.add(place)
        if not place % _ANALYSED_AT_ONCE:
            yield
    return found


def _add_inline_values(objects: Sequence[Any], edges: list[list[int]], places: dict[int, int]) -> None:
    """Of dicts: what an instance keeps in itself its dict leads to, too, and does not show (from 3.13 on)."""
    for place, one in enumerate(objects if _HAS_INLINE_VALUES else ()):
        if issubclass(type(one), dict):
            edges[place] += [places[key] for key in map(id, dict.values(one)) if key in places]


def _edges(one: Any, held: list[Any], places: dict[int, int]) -> list[int]:
    """Indexes of what it refers to. From 3.14 on the stack of a generator that is at a `yield` may borrow
    what its locals hold; that of a coroutine at an `await` does not: what stays there over a jump is its own.
    """
    within = set(map(id, held)) if type(one) in _GENERATORS else map(id, held)
    return [places[key] for key in within if key in places]


def _reached(edges: Sequence[Sequence[int]], from_elsewhere: set[int], driven: set[int]) -> set[int]:
    """Indexes of what these lead to, not by way of those that only the task drives."""
    found, left = set(from_elsewhere), list(from_elsewhere)
    while left:
        more = set(edges[left.pop()]) - found - driven
        found |= more
        left += more
    return found


def _around(start: Any) -> Generator[None, None, list[Any]]:
    """Objects that it leads to, the nearest first."""
    objects, seen, globals_ = [start], {id(start)}, set[int]()
    kinds: dict[int, tuple[type[Any], bool]] = {}  # a class of the program's may not be hashable
    for one in objects:  # while it grows
        if len(objects) >= OBJECTS_MAX:
            break
        if type(one) is FunctionType:
            globals_.update(map(id, _NAMESPACES(one)))
        for held in gc.get_referents(one):
            if id(held) in seen or id(held) in globals_ or not gc.is_tracked(held):
                continue
            kind = type(held)
            if id(kind) not in kinds:
                kinds[id(kind)] = kind, _is_known(kind)
            if kinds[id(kind)][1] and _length(held) <= _LENGTH_MAX:
                seen.add(id(held))
                objects.append(held)
        yield
    return objects[:OBJECTS_MAX]


def _length(one: Any) -> int:
    """Of a container, as the class of Python's has it from which it is derived; else 0."""
    kind = next((kind for kind in _SIZED if issubclass(type(one), kind)), None)
    return 0 if kind is None else kind.__len__(one)


def _count(objects: list[Any]) -> tuple[list[int], list[int], list[list[Any]]] | None:
    """References, weak ones, and what each refers to. None: the collector has run, which calls the program.

    To be called where only the list holds the objects. No list of referents is kept, or the collector would
    run for their number."""
    ran = _collections()
    flat: list[Any] = list(
        chain(
            map(sys.getrefcount, objects),
            map(weakref.getweakrefcount, objects),
            map(len, map(gc.get_referents, objects)),
            chain.from_iterable(map(gc.get_referents, objects)),
        )
    )
    if _collections() != ran:
        return None
    many = len(objects)
    rest = iter(flat[3 * many :])
    referents = [[*islice(rest, length)] for length in flat[2 * many : 3 * many]]
    return [count - _ALONE for count in flat[:many]], flat[many : 2 * many], referents


def _collections() -> int:
    return sum(each["collections"] for each in gc.get_stats())


def _is_known(kind: type[Any]) -> bool:
    """Whether objects of this type, none of those in `_OPAQUE`, are reached by references only."""
    # What asks a class of another metaclass may call the program.
    return (
        type(kind) in (type, ABCMeta) and not issubclass(kind, _OPAQUE) and all(map(_is_plain, kind.__mro__))
    )


def _is_plain(kind: type[Any]) -> bool:
    """Whether it was made by a `class` statement, or is one of CPython's own that are known."""
    try:
        name, base = kind.__module__, kind.__base__
    except AttributeError:  # it has no module
        return False
    if base is None or (type(name) is str and name in _KNOWN):
        return name != "builtins" or _is_built_in(kind)
    slots, module = vars(kind).get("__slots__", ()), sys.modules.get(name) if type(name) is str else None
    if type(slots) not in (str, tuple, list) or type(module) is not ModuleType:
        return False
    words = 2 + (1 if type(slots) is str else len(slots))  # a dict, and weak references
    file = vars(module).get("__file__")
    return (
        bool(kind.__flags__ & _HEAP_TYPE)
        and kind.__basicsize__ - base.__basicsize__ <= words * _POINTER_SIZE
        and (file is None or str(file).endswith((".py", ".pyc")))
    )


def _is_built_in(kind: type[Any]) -> bool:
    """Whether it is the interpreter's own: a type in C without a dot in its name seems to be."""
    if sys.version_info >= (3, 12):
        return bool(kind.__flags__ & _STATIC_BUILTIN)
    return kind in _BUILT_IN


def _registered(one: Any) -> int:
    """How many weak references to it are ours, or those by which asyncio lists tasks and generators, for
    their end."""
    listed = None
    if type(one) is AsyncGeneratorType:
        listed = getattr(asyncio._get_running_loop(), "_asyncgens", None)
    elif issubclass(type(one), asyncio.Task):
        tasks: Any = asyncio.tasks
        listed = getattr(tasks, "_scheduled_tasks", getattr(tasks, "_all_tasks", None))
    removes = getattr(listed, "_remove", ours)
    # A proxy hands what it is asked on to the object.
    references = (each for each in weakref.getweakrefs(one) if issubclass(type(each), weakref.ReferenceType))
    callbacks = map(_CALLBACK, references)
    return sum(called is ours or called is removes for called in callbacks)
