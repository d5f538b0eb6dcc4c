"""Starts and stops the tracing of calls, and gives each chosen code object its number.

The calls themselves are noted in C (native/probes/methods). From 3.12 on the events are sys.monitoring's,
which costs nothing in code that is not chosen; before, those of a profile function.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from opcode import opname
from types import CodeType
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

from loopcanary.model.method_map import CALLS, MAGIC, METHODS, NUMBER_MAX, Method, record_of
from loopcanary.patches import Patches
from loopcanary.whose_exception import ours_of

if TYPE_CHECKING:
    from loopcanary._native import Native


_INSTRUCTIONS_MAX: Final = 12
_SIMPLE: Final = frozenset(
    (
        *("PUSH_NULL", "POP_TOP", "COPY", "SWAP", "COPY_FREE_VARS", "MAKE_CELL", "IS_OP", "TO_BOOL"),
        *("LOAD_CONST", "LOAD_SMALL_INT", "LOAD_COMMON_CONSTANT", "LOAD_GLOBAL", "LOAD_NAME", "LOAD_ATTR"),
        *("LOAD_DEREF", "LOAD_CLOSURE", "STORE_DEREF", "STORE_ATTR", "STORE_GLOBAL", "BUILD_TUPLE"),
        *("RETURN_VALUE", "RETURN_CONST"),
    )
)
"""No call, no operator but `is`: those on constants are constants by now."""
_SIMPLE_KINDS: Final = ("LOAD_FAST", "STORE_FAST", "POP_JUMP_IF_", "POP_JUMP_FORWARD_", "JUMP_FORWARD")
_UNCOUNTED: Final = frozenset(("CACHE", "EXTENDED_ARG", "RESUME", "NOP", "NOT_TAKEN"))


def is_trivial(code: CodeType) -> bool:
    """Whether a call of it takes no time that matters: at most 12 instructions, no backward jump, no call, no
    operator but on constants and `is`."""
    names = [name for number in code.co_code[::2] if (name := opname[number]) not in _UNCOUNTED]
    return len(names) <= _INSTRUCTIONS_MAX and all(
        name in _SIMPLE or name.startswith(_SIMPLE_KINDS) for name in names
    )


_HERE: Final = os.path.abspath(__file__)  # noqa: PTH100 - pathlib is not loaded for it
_PACKAGE: Final = _HERE.rpartition(f"{os.sep}tracers{os.sep}")[0] + os.sep
_INSTALLED: Final = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


class ChosenCode:
    """Says of files whether their functions are traced. Any thread."""

    def __init__(self, wanted: Sequence[str]) -> None:
        """`wanted`: `app`, `lib.module`, `lib.*_api`, `.`; with `!` before it what is left out."""
        self._names = tuple(one for one in wanted if one != "." and not one.startswith("!"))
        self._not = tuple(one[1:] for one in wanted if one.startswith("!"))
        self._own = "." in wanted
        self._known: dict[str, bool] = {}
        # As they are now: a program may change them, and its own code lies where it did.
        standard = os.path.dirname(os.path.abspath(os.__file__))  # noqa: PTH100, PTH120
        scripts = os.path.join(sys.prefix, "bin")  # noqa: PTH118
        self._foreign = tuple(folder + os.sep for folder in (standard, scripts))

    def has(self, file: str) -> bool:
        """Whether what is defined in a file (`co_filename`) is traced."""
        known = self._known.get(file)
        if known is None:
            known = self._known[file] = self._is_chosen(file)
        return known

    def _is_chosen(self, file: str) -> bool:
        if not file or file.startswith("<"):
            return False
        path = os.path.abspath(file)  # noqa: PTH100
        if path.startswith(_PACKAGE):
            return False
        names = tuple(_module_names(path))
        if any(_matches(name, self._not) for name in names):
            return False
        return any(_matches(name, self._names) for name in names) or (self._own and self._is_own(path))

    def _is_own(self, path: str) -> bool:
        if path.startswith(_PACKAGE) or any(folder in path for folder in _INSTALLED):
            return False
        return not path.startswith(self._foreign)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    """Whether it is one of the modules, or in one of the packages."""
    return any(fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}.*") for pattern in patterns)


def _module_names(path: str) -> Iterator[str]:
    """What the file is called when it is imported, from each folder of sys.path that it is in."""
    stem = path.removesuffix(".py").removesuffix(f"{os.sep}__init__")
    for entry in tuple(sys.path):
        folder = os.path.join(os.path.abspath(str(entry)), "")  # noqa: PTH100, PTH118 - '': the current one
        if stem.startswith(folder):
            yield stem[len(folder) :].replace(os.sep, ".")


_WORDS_LEAST: Final = 1 << 12
_WORDS_MOST: Final = 1 << 22
_TOOL: Final = "loopcanary"
_TOOL_IDS: Final = (4, 3, 2)
"""Those without a meaning first, then that of profilers."""
_NEVER: Final = (1 << 64) - 1
_ROOM: Final = (
    "a process has at most 16 rings of calls, and all take at most a quarter of the folder of flight files;"
    " half of what is free there, and 64 MB of addresses, stay free"
)
_LESS: Final = f"methods: fewer calls of some threads are kept, or none: {_ROOM}"
_monitoring: Any = getattr(sys, "monitoring", None)


class CannotTraceError(Exception):
    """Calls are not traced; the message says why."""


class CallsTracer:
    """Traces calls into files beside a flight file."""

    def __init__(
        self,
        native: Native,
        wanted: Sequence[str],
        ring_bytes: int,
        tell: Callable[[str], object],
        slow_ns: int | None = None,
    ) -> None:
        """`tell`: says a line to people, on a thread for whose calls there is little room. `slow_ns`: a call
        of this length outside of stalls is noted as slow; None: none is."""
        self._native = native
        self._tell_of_less = lambda: tell(_LESS)
        self._slow_us = _NEVER if slow_ns is None else max(1, slow_ns // 1_000)
        self._chosen = ChosenCode(wanted)
        words = min(max(ring_bytes // 8, _WORDS_LEAST), _WORDS_MOST)
        self._words = 1 << words.bit_length() - 1
        self._map = ""
        self._number = 0
        self._tool: int | None = None
        self._patches = Patches()
        self._watched: list[ref[CodeType]] = []

    def start(self, flight: str) -> str | None:
        """Traces from now on. Answers what there is to say of it. CannotTraceError, OSError: it does not."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        self._map = flight + METHODS
        descriptor = os.open(self._map, flags, 0o600)
        try:
            os.write(descriptor, MAGIC)
        finally:
            os.close(descriptor)
        self._number = 0
        try:
            self._take_tool()
            disable = None if _monitoring is None else _monitoring.DISABLE
            files, methods = os.fsencode(flight + CALLS), os.fsencode(self._map)
            got = self._native.calls_start(
                files, methods, self._words, self._slow_us, self._number_of, disable, self._tell_of_less
            )
            self._begin_events()
            self._patches.hook("profile functions of threads" if _monitoring is None else "sys.monitoring")
        except RuntimeError as error:
            self.stop()
            raise CannotTraceError(str(error)) from None
        except ours_of(OSError) as error:
            self.stop()
            raise CannotTraceError(f"no ring could be made ({error.strerror}): {_ROOM}") from None
        except BaseException:
            self.stop()
            raise
        if got is None or got == self._words:
            return None
        return f"methods: there is room for the last {got // 2:,} calls of a thread, not {self._words // 2:,}"

    def stop(self) -> None:
        """Traces no more; all code is as fast as before. What was noted stays. Idempotent."""
        self._end_events()
        self._native.calls_stop()
        self._patches.take_back()

    def counts(self) -> dict[str, int]:
        return {
            "methods_known": self._number,
            "methods_threads_refused": self._native.calls_refused(),
            "methods_slow": self._native.calls_slow(),
        }

    # ---- code objects -----------------------------------------------------------------------

    def _number_of(self, code: CodeType) -> int:
        """The chooser: called once a code object, before its first call; 0: it is not traced."""
        if not self._chosen.has(code.co_filename):
            return 0
        is_small = is_trivial(code)
        number = 0
        if not is_small:
            # Taken before it is written: another thread may come while that goes on.
            self._number = number = self._number + 1
        if number > NUMBER_MAX or not self._write(code, number) or is_small:
            return 0
        if self._tool is not None:
            _monitoring.set_local_events(self._tool, code, _local_events())
            self._watched.append(ref(code))
        return number

    def _write(self, code: CodeType, number: int) -> bool:
        """False: there is no room for its name, without which its calls would mean nothing."""
        method = Method(
            number=number,
            qualname=code.co_qualname,
            file=code.co_filename,
            line=code.co_firstlineno,
            is_trivial=number == 0,
        )
        record = record_of(method)
        try:
            # Opened anew: programs close descriptors that they have not opened.
            descriptor = os.open(self._map, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                written = os.write(descriptor, record)
                if 0 < written < len(record):  # half a record would hide all behind it
                    os.ftruncate(descriptor, os.fstat(descriptor).st_size - written)
                return written == len(record)
            finally:
                os.close(descriptor)
        except ours_of(OSError):
            return False

    # ---- sys.monitoring ---------------------------------------------------------------------

    def _take_tool(self) -> None:
        if _monitoring is None:
            return
        for number in _TOOL_IDS:
            with suppress(ValueError):
                _monitoring.use_tool_id(number, _TOOL)
                self._tool = number
                return
        others = ", ".join(str(_monitoring.get_tool(number)) for number in _TOOL_IDS)
        raise CannotTraceError(f"other tools use the tool ids of sys.monitoring: {others}")

    def _begin_events(self) -> None:
        if self._tool is None:
            return
        events = _monitoring.events
        for event, callback in self._callbacks().items():
            _monitoring.register_callback(self._tool, event, callback)
        # What was switched off for a tool of this number is asked about again.
        _monitoring.restart_events()
        _monitoring.set_events(self._tool, events.PY_START | events.PY_UNWIND | events.PY_THROW)

    def _end_events(self) -> None:
        tool, self._tool = self._tool, None
        if tool is None or _monitoring.get_tool(tool) != _TOOL:
            return
        _monitoring.set_events(tool, 0)
        for code in self._watched:
            if (found := code()) is not None:
                _monitoring.set_local_events(tool, found, 0)
        self._watched.clear()
        for event in self._callbacks():
            _monitoring.register_callback(tool, event, None)
        _monitoring.free_tool_id(tool)

    def _callbacks(self) -> dict[int, Callable[..., object]]:
        events, native = _monitoring.events, self._native
        return {
            events.PY_START: native.calls_on_start,
            events.PY_RESUME: native.calls_on_enter,
            events.PY_THROW: native.calls_on_enter,
            events.PY_RETURN: native.calls_on_leave,
            events.PY_YIELD: native.calls_on_leave,
            events.PY_UNWIND: native.calls_on_leave,
        }


def _local_events() -> int:
    events = _monitoring.events
    return int(events.PY_START | events.PY_RESUME | events.PY_RETURN | events.PY_YIELD)
