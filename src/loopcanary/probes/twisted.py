"""The Twisted probe: turns around the wait of the epoll, poll and select reactors; delayed calls, calls from
other threads and descriptors as callbacks.

The asyncio reactor runs on an asyncio loop, and is seen as one. Twisted is never imported here.
"""

from __future__ import annotations

import sys
from functools import partial, update_wrapper
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from loopcanary.probes import ImportWatch, PatchingProbe
from loopcanary.whose_exception import ours

if TYPE_CHECKING:
    from collections.abc import Callable

    from loopcanary.protocols.loops import LoopHooks


KIND = "twisted"
_BASE = "twisted.internet.base"
_NAMED_BY_THE_ENGINE = (FunctionType, MethodType, BuiltinFunctionType, partial)
"""Callables whose names the watchdog finds by itself."""


class TwistedProbe(PatchingProbe):
    """Watches the reactor, made before or after."""

    kind = KIND

    def __init__(self, *sides: Any) -> None:
        super().__init__(*sides)
        self._hooks: LoopHooks = self._engine.LoopHooks(KIND)
        self._watches = [
            ImportWatch("twisted.internet.posixbase", lambda: self._contain(self._patch_poll_like)),
            ImportWatch("twisted.internet.selectreactor", lambda: self._contain(self._patch_select)),
        ]

    # ---- the loop ---------------------------------------------------------------------------

    def _patch(self) -> None:
        base: Any = sys.modules[_BASE]
        reactor_type = base.ReactorBase
        if self._patches.wrap(reactor_type, "runUntilCurrent", self._hooks.around_works):
            self._patches.put(base, "heappop", partial(_around_pop, self._hooks))
        from_threads = _CallsFromThreads(self._hooks, vars(base).get("_threadCallHandler"))
        if from_threads.plain is not None:
            self._patches.put(base, "_threadCallHandler", lambda _: from_threads)
        self._patches.wrap(reactor_type, "mainLoop", self._around_main_loop)
        reactor = sys.modules.get("twisted.internet.reactor")
        if isinstance(reactor, reactor_type) and getattr(reactor, "_started", False):
            self._bracket_poller(reactor)
            self._loop_seen()

    def _around_main_loop(self, original: Callable[..., Any]) -> Callable[..., Any]:
        run_begin, run_end = self._hooks.run_begin, self._hooks.run_end

        def mainLoop(self_: Any) -> Any:  # noqa: N802 - Twisted's name
            self._loop_seen()
            self._bracket_poller(self_)
            run_begin()
            try:
                return original(self_)
            finally:
                run_end()

        return update_wrapper(mainLoop, original)

    # ---- its waits --------------------------------------------------------------------------

    def _bracket_poller(self, reactor: Any) -> None:
        """Never raises."""
        try:
            plain = getattr(reactor, "_poller", None)  # of its __dict__: it would be slower ever after
            if plain is not None and not isinstance(plain, _Poller) and hasattr(plain, "poll"):
                bracketed = _Poller(plain, self._hooks)
                reactor._poller = bracketed
                self._patches.hook("_poller of Twisted's reactor", partial(_put_back, reactor, bracketed))
        except ours():  # a reactor of another make: it is watched by its callbacks
            return

    def _patch_select(self) -> None:
        module: Any = sys.modules["twisted.internet.selectreactor"]
        self._patches.put(module, "_select", self._hooks.around_wait)
        self._patches.wrap(module.SelectReactor, "_doReadOrWrite", self._around_descriptor)

    # ---- its descriptors --------------------------------------------------------------------

    def _patch_poll_like(self) -> None:
        module: Any = sys.modules["twisted.internet.posixbase"]
        self._patches.wrap(module._PollLikeMixin, "_doReadOrWrite", self._around_descriptor)

    def _around_descriptor(self, original: Callable[..., Any]) -> Callable[..., Any]:
        return self._hooks.around_work(original, "protocol", _descriptor_name)


def _put_back(reactor: Any, bracketed: _Poller) -> None:
    if getattr(reactor, "_poller", None) is bracketed:
        reactor._poller = bracketed.plain


class _Poller:
    """A select.epoll or select.poll object whose waits are bracketed. It has what that has: an attribute that
    were asked for by __getattr__ would cost each look at `poll` CPython's specialization."""

    poll: Callable[..., Any]

    def __init__(self, plain: Any, hooks: LoopHooks) -> None:
        self.plain = plain
        for name in dir(plain):
            if not name.startswith("_") and callable(getattr(plain, name)):
                setattr(self, name, getattr(plain, name))
        self.poll = hooks.around_wait(plain.poll)

    @property
    def closed(self) -> bool:
        """As select.epoll has it."""
        return bool(self.plain.closed)


def _around_pop(hooks: LoopHooks, pop: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`heapq.heappop` as twisted.internet.base has it. Delayed calls run one after the other in
    runUntilCurrent: each begins when it is taken off the heap, and ends when the next one is, or when there
    are no more."""
    work_begin, works_end = hooks.work_begin, hooks.works_end

    def heappop(heap: Any) -> Any:
        works_end()
        call = pop(heap)
        try:
            if not call.cancelled and not call.delayed_time > 0.0:
                work_begin(_work_of(call.func))
        except AttributeError:  # not of the reactor's heap
            pass
        return call

    return heappop


class _CallsFromThreads:
    """The context manager around each call of callFromThread, with a bracket. The reactor's thread."""

    def __init__(self, hooks: LoopHooks, plain: Any) -> None:
        self._work_begin, self._work_end = hooks.work_begin, hooks.work_end
        self.plain = plain

    def __enter__(self) -> Any:
        # for f, a, kw in self.threadCallQueue: with _threadCallHandler: f(*a, **kw)
        function = sys._getframe(1).f_locals.get("f")
        self._work_begin("callFromThread" if function is None else _work_of(function))
        return self.plain.__enter__()

    def __exit__(self, *error: object) -> Any:
        try:
            return self.plain.__exit__(*error)
        finally:
            self._work_end()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plain, name)


def _work_of(function: Any) -> Any:
    """What names the call: itself where the engine can read its name; what a LoopingCall calls; its class."""
    if isinstance(function, _NAMED_BY_THE_ENGINE):
        return function
    inner = getattr(function, "f", None)
    if isinstance(inner, _NAMED_BY_THE_ENGINE):
        return inner
    return sys.intern(type(function).__qualname__)


def _descriptor_name(selectable: type, protocol: type) -> str:
    """The protocol's class and method, as people wrote them: "Echo.dataReceived"; else the descriptor's."""
    if protocol is type(None):
        return selectable.__qualname__
    received = "datagramReceived" if hasattr(protocol, "datagramReceived") else "dataReceived"
    return f"{protocol.__qualname__}.{received}"
