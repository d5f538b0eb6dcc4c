"""Threads that run Python of ours in the program: how they are made, under which signal mask they call
others' code, and what the program's own threads are called."""

from __future__ import annotations

# `_signal` is built in: no import of it can fail while the program changes sys.path, and `signal`, which few
# programs need, stays unloaded.
import _signal  # type: ignore[import-not-found]
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from loopcanary.facts import is_short_of_descriptors
from loopcanary.whose_exception import ours, ours_of

if TYPE_CHECKING:
    from loopcanary._native import Native

_GONE_MAX = 256
"""Names that are kept of threads that have ended."""


class PythonThread:
    """A daemon thread of threading's."""

    def __init__(self, function: Callable[[], None], name: str = "loopcanary-drain") -> None:
        self._thread = threading.Thread(target=function, name=name, daemon=True)

    def start(self) -> None:
        """RuntimeError where the system gives none."""
        self._thread.start()

    def join(self, timeout_s: float) -> bool:
        """Whether it has ended by then."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()


class QuietThread:
    """A thread of the native engine's."""

    def __init__(self, native: Native, function: Callable[[], None]) -> None:
        self._native = native
        self._function = function
        self._handle: Any = None

    def start(self) -> None:
        """OSError where the system gives none."""
        self._handle = self._native.start_thread(self._function)

    def join(self, timeout_s: float) -> bool:
        """Whether it has ended by then."""
        return self._handle is None or bool(self._native.join_thread(self._handle, timeout_s))


@contextmanager
def as_in_main_thread() -> Iterator[None]:
    """In this block the calling thread blocks the signals that the main thread blocks, and no others.

    A process that a reporter or interceptor starts inherits the mask: with that of our thread, which takes no
    signal of the program's, it would be deaf to SIGTERM. Few of those sent to the process come here: the
    kernel prefers the main thread, but for CPU timers.
    """
    blocked = _blocked_in_main_thread()
    if blocked is None:
        yield
        return
    before = _signal.pthread_sigmask(_signal.SIG_SETMASK, blocked)
    try:
        yield
    finally:
        _signal.pthread_sigmask(_signal.SIG_SETMASK, before)


def _blocked_in_main_thread() -> list[int] | None:
    """None where the kernel does not say, or the program needs the descriptor."""
    if is_short_of_descriptors():
        return None
    try:
        with open("/proc/self/status", "rb") as status:
            words = next(line for line in status if line.startswith(b"SigBlk:")).split()
    except ours_of(OSError, StopIteration):
        return None
    return [number for number in _signal.valid_signals() if int(words[1], 16) >> (number - 1) & 1]


class ThreadNames:
    """Names of the threads of this process, by the kernel's numbers, the newest last; of those, too, that
    ended a moment ago: one that held the GIL in a stall has often ended when the drain asks. Drain thread."""

    def __init__(self) -> None:
        self._known: dict[int, str] = {}

    def look(self) -> tuple[tuple[int, str], ...]:
        """(native id, name) of all that live, and of the last that have ended. Raises nothing that the
        program's threads do."""
        for thread in _ended_but_referenced():
            self._note(thread)
        # The table is only looked at: asking `threading` for the current thread would make an object for it
        # that the program could see.
        living: list[Any] = list(threading._active.values())  # type: ignore[attr-defined]  # noqa: SLF001
        for thread in living:
            self._note(thread)
        surplus = len(self._known) - len(living) - _GONE_MAX
        for number in list(self._known)[: max(surplus, 0)]:
            del self._known[number]
        return tuple(self._known.items())

    def _note(self, thread: Any) -> None:
        try:
            number, name = thread.native_id, thread.name
        except ours():  # a class of the program's own may make what it likes of its name
            return
        if number is not None and isinstance(name, str):
            self._known.pop(number, None)  # the kernel gives numbers out again: the latest owner counts
            self._known[number] = name


def _ended_but_referenced() -> Iterable[Any]:
    """Thread objects that the program still holds. `threading` keeps them for its own clean-up."""
    try:
        return list(getattr(threading, "_dangling", ()))
    except RuntimeError:  # another thread adds itself
        return ()
