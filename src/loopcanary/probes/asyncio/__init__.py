"""The asyncio probe: callbacks bracketed in `Handle._run`, turns around the selector's wait.

With the native engine both brackets are C (native/probes/asyncio/handle.c, turn_select.c, wait_hook.c): a
callback costs less than in an unwatched program. With the portable engine only `run_forever` is patched, to
learn of loops. asyncio itself is never imported here: the patches are laid when the program has
imported it.
"""

from __future__ import annotations

import sys
import time
import weakref
from functools import partial

from loopcanary.patches import Patches
from loopcanary.probes import PatchingProbe, is_from
from loopcanary.whose_exception import ours

TYPE_CHECKING = False  # typing is not loaded for it

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import CodeType
    from typing import Any

    from loopcanary._native import Native
    from loopcanary.protocols.tracing import Tracers


KIND = "asyncio"


class AsyncioProbe(PatchingProbe):
    """Watches all loops of asyncio's own kind, made before or after, in any thread."""

    kind = KIND
    _engine: Native

    def __init__(self, *sides: Any) -> None:
        super().__init__(*sides)
        self._tracers: Callable[[], Tracers] | None = None
        self._loop_patches = Patches()
        self._selectors: weakref.WeakSet[Any] = weakref.WeakSet()

    def use_tracers_when_needed(self, tracers: Callable[[], Tracers]) -> None:
        """Makes the trace of a loop that never waits; most programs need none."""
        self._tracers = tracers

    def _take_back(self) -> None:
        self._engine.asyncio_loop_forget(self._loop_patches.take_back())
        self._engine.asyncio_handle_forget(self._patches.take_back())
        selectors, self._selectors = self._selectors, weakref.WeakSet()
        for selector in selectors:
            self._unbracket(selector)
        self._engine.unhook_epoll_wait()

    def _patch(self) -> None:
        base_events = sys.modules["asyncio.base_events"]
        events = sys.modules["asyncio.events"]
        loop_type = base_events.BaseEventLoop
        self._patches.put(events.Handle, "_run", partial(self._handle_method, events))
        self._loop_patches.put(
            loop_type,
            "run_forever",
            lambda original: self._engine.asyncio_loop_method(
                loop_type, original, is_from(original, base_events), self.adopt
            ),
        )
        self._engine.learn_asyncio()
        epoll = getattr(sys.modules.get("select"), "epoll", None)
        if epoll is not None:
            self._engine.hook_epoll_wait(epoll.poll)
        running = events._get_running_loop()
        if running is not None:
            self.adopt(running)

    def _handle_method(self, events: Any, original: Any) -> object:
        pristine = is_from(original, events)
        return self._engine.asyncio_handle_method(
            events.Handle,
            events.TimerHandle,
            None if pristine else original,
            _describe_exception,
            self.adopt,
            _call_sites(original.__code__) if pristine else (None, (0, 0), (0, 0)),
            events.__dict__,
        )

    def adopt(self, loop: Any) -> None:
        """Brackets the wait of this loop. Called before it runs; or at its first handle, if the loop ran
        before the engine was installed. Never raises."""
        try:
            self._loop_seen()
            selector = getattr(loop, "_selector", None)
            base = sys.modules["selectors"].BaseSelector if "selectors" in sys.modules else None
            # Test doubles and selectors without a __dict__ are left alone: callbacks are then turns. A
            # __dict__ is not asked for: an object that has been is slower to look into ever after.
            if base is None or not isinstance(selector, base) or not type(selector).__dictoffset__:
                return
            select = selector.select
            if type(select) is not self._engine.TurnSelect:
                self._patches.hook("select() of the loops' selectors")
                self._selectors.add(selector)
                ready = getattr(loop, "_ready", None)
                selector.select = self._engine.TurnSelect(
                    selector,
                    select,
                    SpinWatch(ready, self._tell_spin).look,
                    _is_plain_epoll(selector, select),
                )
                if not self._is_on:  # uninstalled meanwhile, by a thread that may not have found this one
                    self._unbracket(selector)
        except ours():  # a loop that cannot be bracketed is still watched by its callbacks
            return

    def _tell_spin(self, name: str, begin_ns: int, end_ns: int, turns: int) -> None:
        if self._tracers is not None:
            self._tracers().idle(KIND).spun(name, begin_ns, end_ns, turns)

    def _unbracket(self, selector: Any) -> None:
        bracket = selector.__dict__.get("select")
        if type(bracket) is not self._engine.TurnSelect:
            return
        selector.__dict__.pop("select", None)
        if selector.select != bracket.__wrapped__:  # the instance had been given a select of its own
            selector.select = bracket.__wrapped__


def _is_plain_epoll(selector: Any, select: Any) -> bool:
    """Whether `select` is what the standard library has for epoll, of a class that changes nothing."""
    selectors: Any = sys.modules["selectors"]
    epoll = getattr(selectors, "EpollSelector", None)
    function = getattr(select, "__func__", None)
    return (
        epoll is not None
        and type(selector) is epoll
        and function is vars(epoll).get("select")
        and is_from(function, selectors)
    )


def _call_sites(code: CodeType) -> tuple[CodeType, tuple[int, int], tuple[int, int]]:
    """Where the original calls the callback and the loop's exception handler: (code, (offset, line), ...).

    The callback's line is the one after `try:`, the first of the body; the handler's is the last but one.
    """
    lines = sorted({line for _, _, line in code.co_lines() if line and line > code.co_firstlineno})
    if len(lines) < 3:
        return code, (0, code.co_firstlineno), (0, code.co_firstlineno)
    return code, _call_on_line(code, lines[1]), _call_on_line(code, lines[-2])


def _call_on_line(code: CodeType, line: int) -> tuple[int, int]:
    """Offset and line of the first instruction there that spans all of the expression: its call."""
    spans = [
        (end_column - column if column is not None and end_column is not None else 0, 2 * index)
        for index, (at, _, column, end_column) in enumerate(code.co_positions())
        if at == line
    ]
    widest = max((span for span, _ in spans), default=0)
    return next((offset for span, offset in spans if span == widest), 0), line


def _describe_exception(handle: Any, exception: BaseException) -> dict[str, Any]:
    """What Handle._run makes of an exception of the callback (CPython Lib/asyncio/events.py)."""
    # By `asyncio.events`, as there: where all imports are lazy (PEP 810) this loads it.
    format_source: Callable[..., str] = sys.modules["asyncio.events"].format_helpers._format_callback_source
    # The debug keyword decides whether arguments are shown; it came in the middle of 3.12 and 3.13.
    takes_debug = "debug" in (getattr(format_source, "__kwdefaults__", None) or ())
    options = {"debug": handle._loop.get_debug()} if takes_debug else {}
    source = format_source(handle._callback, handle._args, **options)
    context = {"message": f"Exception in callback {source}", "exception": exception, "handle": handle}
    if handle._source_traceback:
        context["source_traceback"] = handle._source_traceback
    return context


SPIN_NS = 1_000_000_000
"""A loop that has not waited for this time spins, if the same work was ready at each look."""
_LOOKS_LEAST = 4
EXAMINED_MAX = 32


class SpinWatch:
    """Watches one loop, on its thread, for work that schedules itself each time, so that the loop never
    waits. The caller contains what is raised.

    `while not done: await asyncio.sleep(0)`, or a callback that calls `call_soon` with itself: a core is busy
    for nothing, and everything else on the loop is slower. Many short turns are not a stall. So, while turn
    after turn begins with ready work, the loop's queue is looked at now and then.
    """

    def __init__(
        self,
        ready: Iterable[Any] | None,
        tell: Callable[[str, int, int, int], None],
        clock: Callable[[], int] = time.monotonic_ns,
        identities: Callable[[Iterable[Any]], Iterable[tuple[int, str]]] | None = None,
    ) -> None:
        """Looks at nothing yet.

        Args:
            ready: The loop's queue of handles.
            tell: Called with a name, begin and end in ns, and the number of turns, of a spin so far: while it
                lasts (model.figures.spin_told_after_ns), and once more when it is over.
            clock: As time.monotonic_ns().
            identities: Number and name of each that is ready, where these are not handles of asyncio's.
        """
        self._identities = identities or _identities
        self._ready = ready
        self._tell = tell
        self._clock = clock
        self._begin(None, set())

    def _begin(self, begin_ns: int | None, always: set[tuple[int, str]]) -> None:
        self._begin_ns = self._end_ns = begin_ns
        self._always = always
        self._turns = self._looks = 0
        self._limit_ns = SPIN_NS
        self._name = ""

    def _over(self) -> None:
        if self._name and self._begin_ns is not None and self._end_ns is not None:
            self._tell(self._name, self._begin_ns, self._end_ns, self._turns)

    def look(self, turns: int) -> None:
        """`turns` more turns began with ready work; 0: the loop is about to wait."""
        now_ns = self._clock()
        if turns == 0 or self._ready is None:
            self._over()
            self._begin(None, set())
            return
        there = set(self._identities(self._ready))
        if self._begin_ns is None or not self._always & there:
            self._over()
            self._begin(now_ns, there)
            return
        self._always &= there
        self._turns += turns
        self._looks += 1
        self._end_ns = now_ns
        took_ns = now_ns - self._begin_ns
        if took_ns > self._limit_ns and self._looks >= _LOOKS_LEAST:
            from loopcanary.model.figures import spin_told_after_ns  # few programs spin

            self._limit_ns = spin_told_after_ns(took_ns)
            self._name = self._name or min(name for _, name in self._always)
            self._tell(self._name, self._begin_ns, now_ns, self._turns)


def _identities(ready: Iterable[Any]) -> Iterable[tuple[int, str]]:
    """What is ready: each task, or plain callback, by its number and its name."""
    for number, handle in enumerate(ready):
        if number == EXAMINED_MAX:
            return
        callback = getattr(handle, "_callback", None)
        if callback is not None:
            yield identity_of(callback)


def identity_of(callback: Any) -> tuple[int, str]:
    """Number and name of the task whose step it is, or of the function."""
    task = task_of(callback)
    if task is not None:
        return id(task), name_of(callback)
    function = getattr(callback, "func", callback)
    bound = getattr(function, "__func__", None)  # a bound method is a new object each time
    number = id(function) if bound is None else hash((id(function.__self__), id(bound)))
    return number, name_of(callback)


def name_of(callback: Any) -> str:
    """The name of work in the loop's queue, for reports."""
    task = task_of(callback)
    coroutine = task.get_coro() if task is not None else None
    if coroutine is not None:
        return f"{_qualname_of(coroutine)} (task)"
    return _qualname_of(getattr(callback, "func", callback))


def task_of(callback: Any) -> Any:
    """The task, if the callback is a task's step; else None."""
    task = getattr(callback, "__self__", None)
    return task if hasattr(task, "get_coro") else None


def _qualname_of(work: Any) -> str:
    name = getattr(work, "__qualname__", None)
    return name if isinstance(name, str) else type(work).__qualname__
