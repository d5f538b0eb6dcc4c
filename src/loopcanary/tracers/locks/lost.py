"""Waits of asyncio that nothing can end any more: an item for a Queue that no living code knows.

Only where the loop's main task, the one that it runs until it is complete, is stuck as well: of any other
task it is not known who may cancel it. `island` finds that out.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import asyncio
import builtins
import gc
import signal
import sys
import types
import weakref
from abc import ABCMeta
from collections import deque
from collections.abc import Generator, Sequence
from functools import lru_cache, partial
from itertools import chain, islice
from operator import attrgetter
from types import (
    AsyncGeneratorType,
    CodeType,
    FrameType,
    FunctionType,
    GeneratorType,
    ModuleType,
)
from typing import Any

from loopcanary.late_dataclass import dataclass
from loopcanary.tracers.locks.coroutines import code_of, coroutines, local
from loopcanary.tracers.locks.primitives import is_plumbing
from loopcanary.tracers.locks.tasks import Lost, LostWait, ours

OBJECTS_MAX = 2_000
_LENGTH_MAX = 500
"""The most items of a container that is looked into."""
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
"""Attributes of a function that lead to its namespaces."""
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
    """What nothing can wake any more: the task, where only the loop's runner holds it, and what only it
    holds. None: something else reaches it. In small steps.

    The argument is the garbage collector's own. Of a set of objects, whichever, count the references that
    come from within it, as `tp_traverse` shows them. An object that has more than these is reached from
    elsewhere: a frame that runs, a timer, a transport, a module, another thread, memory of C. So is all that
    such an object reaches. What is left would be garbage, but for the one reference that is left out: the
    runner's, to the task that it runs until it is complete. Nothing that goes on can resume, cancel or feed
    what is left, and it stays so: what nobody reaches nobody can reach again.

    A reference that is not accounted for is one from elsewhere, so to stop early (objects that are many,
    large or not looked into) makes the answer "something may reach it", and never the other one. What refers
    without a reference is counted as reaching, too: a weak reference. And objects of a type in C that may be
    known to a library by their address are not looked into. References are counted in one call in C, in which
    no other thread runs.

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
    """Adds edges from dicts to the values that an instance keeps in itself: its dict leads to them, too, and
    does not show them (from 3.13 on)."""
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
    """Length of a container by the built-in class that it is derived from; 0 for other objects."""
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


_FUTURE = "the result of"
_FAILED_MAX = 10
_WORDS = {
    asyncio.Queue.get.__code__: "an item in",
    asyncio.Queue.put.__code__: "room in",
    asyncio.Queue.join.__code__: "task_done() of",
    asyncio.Condition.wait.__code__: "notify() of",
    asyncio.Event.wait.__code__: "set() of",
}
"""What the code of a wait waits for, in words."""
_FOR_EVER = ("set() of", _FUTURE)
"""Waited for in vain on purpose, too: `await asyncio.Event().wait()` of a main task that only serves."""
_RUN = asyncio.Runner.run.__code__
_UNTIL_COMPLETE = asyncio.BaseEventLoop.run_until_complete.__code__
_ENDS_RUN = ("_run_until_complete_cb", "run_until_complete.<locals>.done_cb")
"""Callbacks of the main task: of asyncio, and of uvloop."""
_FUNCTIONS = ("function", "cython_function_or_method")
_BY_CALL = 1 if sys.version_info >= (3, 14) else 2
"""References of a call of uvloop to its argument: its own, and before 3.14 that of the caller's stack."""


def main_task(loop: Any) -> asyncio.Task[Any] | None:
    """The task that the loop runs until it is complete."""
    for task in asyncio.all_tasks(loop):
        for callback, _ in getattr(task, "_callbacks", None) or ():
            # An object of the program's is not asked.
            if type(callback).__name__ in _FUNCTIONS and callback.__qualname__ in _ENDS_RUN:
                return task
    return None


def lost(loop: Any) -> Generator[None, None, Lost | None]:
    """The waits that nothing can end; None: there are none, or it is not known. In small steps, in a callback
    of the loop."""
    held = _by_runner(loop)
    if held is None:
        return None
    found = yield from island(main_task(loop), held)  # no name here holds the task
    if found is None:
        return None
    places = {id(one): place for place, one in enumerate(found.objects)}
    failed = {}
    for place in islice((one for one in sorted(found.lost) if _has_failed(found.objects[one])), _FAILED_MAX):
        failed[place] = found.reached_from(place)
        yield
    waits, blamed, waiting = [], set[int](), 0
    for place in sorted(found.lost):
        task = found.objects[place]
        if not issubclass(type(task), asyncio.Task) or task.done():
            continue
        yield
        waiting += 1
        words, thing, by = _wait(task)
        at = places.get(id(thing), -1)
        knew = {one for one, known in failed.items() if at in known}
        if at in found.lost and (knew if words in _FOR_EVER else _is_known_to_others(found, at, by)):
            waits.append(LostWait(task, words, thing))
            blamed |= knew
    errors = tuple(sorted((found.objects[one].get_name(), _error(found.objects[one])) for one in blamed))
    return Lost(tuple(waits), errors, waiting - len(waits)) if waits else None


def _by_runner(loop: Any) -> int | None:
    """How many references to the main task are those of who runs it. None: not known."""
    task = main_task(loop)
    if task is None or not loop.is_running():
        return None
    found = 0
    handler = _signal.getsignal(signal.SIGINT)  # that of `signal` asks for the repr of what it finds
    if isinstance(handler, partial) and handler.keywords.get("main_task") is task:
        found += 1
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code not in (_RUN, _UNTIL_COMPLETE):
        frame = frame.f_back
    if frame is not None and frame.f_code is _UNTIL_COMPLETE:
        above = frame.f_back
        return found + (1 if above is None or above.f_code is not _RUN else 2)
    if type(loop).__module__.partition(".")[0] == "uvloop":
        return found + (1 if frame is None else 2 + _BY_CALL)
    return None


def _has_failed(one: Any) -> bool:
    """Whether it is a task that raised, which nobody has looked at."""
    is_task = issubclass(type(one), asyncio.Task)
    return is_task and one.done() and bool(getattr(one, "_log_traceback", False))


def _error(task: Any) -> str:
    return type(task._exception).__name__


def _is_known_to_others(found: Island, place: int, by: Any) -> bool:
    """Not only to the call that waits: `await asyncio.Queue().get()`. (Up to 3.12 it keeps a dict of its
    locals when they have been asked for.)"""
    own = {id(by), *(id(one) for one in gc.get_referents(by) if type(one) is dict)}
    return any(place in found.edges[one] and id(found.objects[one]) not in own for one in found.lost)


def _wait(task: asyncio.Task[Any]) -> tuple[str, Any, Any]:
    """What it waits for, in words and as an object, and the coroutine that does; None: what wakes it is not
    one of these."""
    words, thing, by = "", None, None
    for one in reversed(coroutines(task.get_coro())):
        code = code_of(one)
        if code in _WORDS:
            words, thing, by = _WORDS[code], local(one, "self"), one  # join() waits for an Event of its own
        elif words or code is None or is_plumbing(code):
            break
        else:
            future = task._fut_waiter  # type: ignore[attr-defined]
            return (_FUTURE, future, one) if type(future) is asyncio.Future else ("", None, None)
    return words, thing, by
