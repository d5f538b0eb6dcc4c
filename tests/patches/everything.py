"""What of a process can be replaced, looked at without any help of loopcanary's: for programs of these tests.

Names are as `loopcanary doctor --patches` has them.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import platform
import signal
import sys
import threading
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

MACHINE = platform.machine()
IS_X86 = MACHINE == "x86_64"
WORD = ctypes.sizeof(ctypes.c_void_p)
C = ctypes.CDLL(None)
CALLS = (6, 7) if IS_X86 else (1025, 1026)
"""Relocations of ELF: GLOB_DAT, JUMP_SLOT."""
SIGACTION = 13 if IS_X86 else 134
SLOTS = (8, 9, 11, 15, 16, 17, 18, 19, 23, 24, 25, 27, 28, 34, 35, 37, 38, 39, 40, 41, 47, 49, 50)
"""Words of a PyTypeObject that are functions."""
SUITES = {10: 4, 12: 36, 13: 10, 14: 3, 20: 2}
"""Words that point to so many functions: tp_as_async, tp_as_number, ..."""
DEALLOC = 6
D_METHOD = 5
"""The word of a method's descriptor that points to its definition, whose second word is the function."""
THREAD_STATE_WORDS = 40


class Member(NamedTuple):
    """An attribute, of this object."""

    owner: object
    value: object


def words_at(address: int, count: int) -> tuple[int, ...]:
    return tuple((ctypes.c_size_t * count).from_address(address))


def is_ours(module: str) -> bool:
    return module.partition(".")[0] in ("loopcanary", "__main__", "everything")


def attributes() -> dict[str, Member]:
    """Every attribute of the modules of others, and of the classes in them."""
    found = {}
    for module in [*sys.modules.values()]:
        if type(module) is not types.ModuleType or is_ours(module.__name__):
            continue
        for name, value in [*vars(module).items()]:
            found[f"attribute {module.__name__}.{name}"] = Member(module, value)
            if isinstance(value, type) and not is_ours(str(value.__module__)):
                of = f"attribute {value.__module__}.{value.__qualname__}"
                found |= {f"{of}.{each}": Member(value, one) for each, one in [*vars(value).items()]}
    del found["attribute sys.meta_path"]  # see `hooks`
    return found


def types_here() -> Iterator[type]:
    """Also those that no module names."""
    left, seen = [object], {object}
    while left:
        one = left.pop()
        yield one
        fresh = {*type.__subclasses__(one)} - seen
        seen |= fresh
        left += fresh


def functions_of_types() -> dict[str, Member]:
    """Functions in types: their slots, and those of their methods' definitions."""
    found = {}
    for one in types_here():
        if is_ours(str(one.__module__)):
            continue
        of = "types.CodeType" if one is types.CodeType else f"{one.__module__}.{one.__qualname__}"
        words = words_at(id(one), max(SLOTS) + 1)
        suites = [words_at(words[at], count) for at, count in SUITES.items() if words[at]]
        found[f"slot {of}.tp_dealloc"] = Member(one, words[DEALLOC])
        found[f"slot {of}"] = Member(one, ([words[at] for at in SLOTS], suites))
        for each, value in [*vars(one).items()]:
            if isinstance(value, types.MethodDescriptorType):
                definition = words_at(id(value) + D_METHOD * WORD, 1)[0]
                found[f"method {of}.{each}"] = Member(one, words_at(definition + WORD, 1)[0])
    return found


class Segment(ctypes.Structure):
    """ElfW(Phdr)."""

    _fields_ = (
        ("type", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        *((name, ctypes.c_uint64) for name in ("offset", "address", "physical", "file", "memory", "align")),
    )


class Loaded(ctypes.Structure):
    """dl_phdr_info."""

    _fields_ = (
        ("base", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
        ("segments", ctypes.POINTER(Segment)),
        ("count", ctypes.c_uint16),
    )


class Objects:
    """What the linker has loaded, and where loopcanary's extension lies."""

    def __init__(self) -> None:
        self.loaded: list[tuple[str, int, list[tuple[int, int, int]]]] = []
        look = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Loaded), ctypes.c_size_t, ctypes.c_void_p)
        C.dl_iterate_phdr(look(self._look), None)
        self.ours = [
            (base + address, base + address + size)
            for name, base, parts in self.loaded
            if "/loopcanary/_native." in name
            for kind, address, size in parts
            if kind == 1
        ]

    def _look(self, loaded: Any, _size: int, _data: object) -> int:
        one = loaded.contents
        segments = [one.segments[number] for number in range(one.count)]
        self.loaded.append(
            (one.name.decode(), one.base, [(each.type, each.address, each.memory) for each in segments])
        )
        return 0

    def is_ours(self, address: int) -> bool:
        return any(begin <= address < end for begin, end in self.ours)

    def calls(self) -> set[tuple[str, str]]:
        """The entries by which other objects call into the extension: path of the object, and symbol."""
        return {
            (name, symbol)
            for name, base, parts in self.loaded
            if "/loopcanary/_native." not in name and "vdso" not in name
            for symbol, value in entries(base, parts)
            if self.is_ours(value)
        }


def entries(base: int, parts: list[tuple[int, int, int]]) -> Iterator[tuple[str, int]]:
    """Symbol and value of each entry of an object's global offset table."""
    facts: dict[int, int] = {}
    for kind, address, size in parts:
        if kind == 2:
            words = words_at(base + address, size // WORD)
            facts = dict(reversed([*zip(words[::2], words[1::2], strict=False)]))
    strings, symbols = (at + (base if at < base else 0) for at in (facts.get(5, 0), facts.get(6, 0)))
    for table, size in ((facts.get(23, 0), facts.get(2, 0)), (facts.get(7, 0), facts.get(8, 0))):
        begin = table + (base if table < base else 0)
        for row in range(begin, begin + size, 24):
            offset, info, _ = words_at(row, 3)
            if info & 0xFFFFFFFF in CALLS and info >> 32:
                name = ctypes.c_uint32.from_address(symbols + 24 * (info >> 32)).value
                yield ctypes.string_at(strings + name).decode(), words_at(base + offset, 1)[0]


def signals() -> dict[str, Member]:
    """What the kernel has for each. By the system call: the C library's function may be led elsewhere."""
    found = {}
    for number in range(1, 32):
        action = (ctypes.c_size_t * 32)()
        C.syscall(ctypes.c_long(SIGACTION), ctypes.c_long(number), None, action, ctypes.c_long(8))
        found[f"signal {signal.Signals(number).name}"] = Member(None, action[0])
    return found


def hooks(objects: Objects) -> dict[str, Member]:
    """Lists of the interpreter's and of the system's to which others may add."""
    monitoring = getattr(sys, "monitoring", None)
    stack = (ctypes.c_size_t * 3)()
    C.sigaltstack(None, stack)
    state = ctypes.pythonapi.PyThreadState_Get
    state.restype = ctypes.c_void_p
    found = {
        "gc.callbacks": [*gc.callbacks],
        "sys.meta_path": [*sys.meta_path],
        "sys.path_hooks": [*sys.path_hooks],
        "atexit, for good": atexit._ncallbacks(),
        "threading._register_atexit, for good": len(threading._threading_atexits),
        "sys.settrace": sys.gettrace(),
        "sys.setprofile": sys.getprofile(),
        "sigaltstack of threads that have none, until they end": stack[0],
    }
    if monitoring is None:
        found["profile functions of threads"] = sum(
            map(objects.is_ours, words_at(state(), THREAD_STATE_WORDS))
        )
    else:
        found["sys.monitoring"] = [monitoring.get_tool(number) for number in range(6)]
    return {f"hook {name}": Member(None, value) for name, value in found.items()}


class Snapshot:
    """Of one moment. What it holds is kept, so that no identity is given out again."""

    def __init__(self, **more: object) -> None:
        """`more`: what the program itself looks at."""
        objects = Objects()
        self.calls = {f"call {symbol} in {path or 'the program itself'}" for path, symbol in objects.calls()}
        self.members = {**attributes(), **functions_of_types(), **signals(), **hooks(objects)}
        self.members |= {name: Member(None, value) for name, value in more.items()}
        self.owners = {id(member.owner) for member in self.members.values()}

    def since(self, before: Snapshot) -> set[str]:
        """What is not as it was. A module or class that is new is no replacement."""
        names = {
            name
            for name, (owner, value) in self.members.items()
            if id(owner) in before.owners and not _is_as_it_was(before.members.get(name), owner, value)
        }
        # The function of a descriptor that is another one says no more than its attribute.
        names -= {name for name in names if name.replace("method ", "attribute ", 1) in names - {name}}
        return names | (self.calls ^ before.calls) | {*before.members} - {*self.members}


def _is_as_it_was(before: Member | None, owner: object, value: object) -> bool:
    if before is None or before.owner is not owner:
        return isinstance(value, types.ModuleType)  # a package has the modules in it that were imported
    is_plain = isinstance(value, (int, list, tuple)) and type(value) is type(before.value)
    return value is before.value or (is_plain and value == before.value)
