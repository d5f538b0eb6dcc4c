"""Calls of plugged-in code: bounded on a thread of its own, or on the program's and named while they last.

Code that keeps the GIL while it hangs keeps everything else, too.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from loopcanary.engine.fork_pause import STARTS, imports, wait_for_thread
from loopcanary.engine.import_path import as_here
from loopcanary.engine.threads import PythonThread, QuietThread, as_in_main_thread
from loopcanary.thread_frames import thread_frames
from loopcanary.unpatched import unpatched
from loopcanary.whose_exception import ours_of

if TYPE_CHECKING:
    from loopcanary._native import Native
    from loopcanary.protocols.engine import Thread

PATIENCE_S = 2.0
_AGAIN_S = 10.0
_named: set[int] = set()
"""Threads whose call is being watched."""
_Found = TypeVar("_Found")


class Apart:
    """Any thread."""

    def __init__(self, native: Native | None, tell: Callable[[str], object]) -> None:
        """`native`: None for the portable engine; `tell` shows a line to people."""
        self._native = native
        self._tell = tell

    def called(self, whose: object, part: str, function: Callable[[], _Found]) -> _Found:
        """Calls a function of this object: `named` where that has `on_program_thread` set, else `bounded`."""
        on_program_thread = getattr(whose, "on_program_thread", False)
        return self.named(part, function) if on_program_thread else self.bounded(function)

    def load(self, part: str, function: Callable[[], _Found]) -> _Found:
        """Calls a function that imports. In the middle of an import it is `named`: another thread might have
        to wait for the module that this one imports."""
        is_importing = imports(sys._getframe(), STARTS)  # noqa: SLF001 - as fork_pause
        return self.named(part, function) if is_importing else self.bounded(function)

    def bounded(self, function: Callable[[], _Found]) -> _Found:
        """What the function returns, and raises, on a thread of its own. TimeoutError after PATIENCE_S: then
        it goes on alone, and its outcome is dropped."""
        function = as_here(function)
        who: list[int] = []
        found: list[_Found] = []
        errors: list[Exception] = []

        def run() -> None:
            who.extend(unpatched("_thread", name)() for name in ("get_ident", "get_native_id"))
            with as_in_main_thread():
                try:
                    found.append(function())
                except BaseException as error:  # noqa: BLE001 - SystemExit is the plugin's, not the program's
                    errors.append(error if isinstance(error, Exception) else RuntimeError(repr(error)))

        thread = self._started(run)
        if thread is None:
            return function()
        if not thread.join(PATIENCE_S):
            raise TimeoutError(f"it has not returned after {PATIENCE_S:g} s{_where(*who[:1])}")
        wait_for_thread(who[1])  # a fork is to find no thread that has finished
        if errors:
            raise errors.pop()
        return found.pop()

    def call(self, function: Callable[..., _Found], *args: Any) -> _Found:
        """As `bounded`, with arguments."""
        return self.bounded(partial(function, *args))

    def named(self, part: str, function: Callable[[], _Found]) -> _Found:
        """Calls the function on this thread: returns its result, or raises its exception. Reports to people
        while the call takes longer than PATIENCE_S."""
        me, over = unpatched("_thread", "get_ident")(), unpatched("_thread", "allocate_lock")()
        if me in _named:
            return function()

        def watch() -> None:
            began_s, patience_s = time.monotonic(), PATIENCE_S
            while not over.acquire(timeout=patience_s):
                held_s, patience_s = time.monotonic() - began_s, _AGAIN_S
                self._tell(f"{part} has blocked the calling thread for {held_s:.0f} s{_where(me)}")

        over.acquire()
        _named.add(me)
        thread = self._started(watch)
        try:
            return function()
        finally:
            _named.discard(me)
            over.release()
            if thread is not None:
                thread.join(PATIENCE_S)

    def _started(self, run: Callable[[], None]) -> Thread | None:
        """None: the system gives no thread."""
        native = self._native
        thread = PythonThread(run, "loopcanary-plugin") if native is None else QuietThread(native, run)
        try:
            thread.start()
        except ours_of(OSError, RuntimeError):
            return None
        return thread


class ApartReporter:
    """See protocols.plugins.Reporter. A third party's."""

    def __init__(
        self, reporter: Any, call: Callable[..., Any], *, direct: Collection[str] = ("name",)
    ) -> None:
        """`call` calls its methods with their arguments, but for those that `direct` names."""
        self._reporter = reporter
        self._call = call
        self._direct = direct

    def __getattr__(self, what: str) -> Any:
        found = getattr(self._reporter, what)
        return found if what in self._direct else partial(self._call, found)


def _where(ident: int = 0) -> str:
    """The thread's innermost line outside of the standard library; empty: it cannot be seen."""
    frame = inner = thread_frames().get(ident)
    while frame and str(frame.f_globals.get("__name__")).partition(".")[0] in sys.stdlib_module_names:
        frame = frame.f_back
    frame = frame or inner
    return f", in {frame.f_code.co_filename}:{frame.f_lineno}, {frame.f_code.co_name}" if frame else ""
