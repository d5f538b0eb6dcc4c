"""The Twisted probe: turns around the wait of the epoll, poll and select reactors; delayed calls, calls from
other threads and descriptors as callbacks.

The asyncio reactor runs on an asyncio loop, and is seen as one. Twisted is never imported here.
"""

from __future__ import annotations

import sys
from functools import partial, update_wrapper
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from loopcanary.probes.on_import import ImportWatch
from loopcanary.probes.patches import PatchingProbe

if TYPE_CHECKING:
    from collections.abc import Callable

    from loopcanary.protocols.loops import LoopHooks

KIND = "twisted"
_BASE = "twisted.internet.base"
_NAMED_BY_THE_ENGINE = (FunctionType, MethodType, BuiltinFunctionType, partial)
"""Callables whose names the watchdog finds by itself."""
_NAMES_MAX = 1024


class TwistedProbe(PatchingProbe):
    """Watches the reactor, made before or after."""

    kind = KIND

    def __init__(self, *sides: Any) -> None:
        super().__init__(*sides)
        self._hooks: LoopHooks = self._engine.LoopHooks(KIND)
        self._pollers: list[tuple[Any, _Poller]] = []
        self._watches = [
            ImportWatch("twisted.internet.posixbase", lambda: self._contain(self._patch_poll_like)),
            ImportWatch("twisted.internet.selectreactor", lambda: self._contain(self._patch_select)),
        ]

    def _take_back(self) -> None:
        super()._take_back()
        pollers, self._pollers = self._pollers, []
        for reactor, poller in pollers:
            if reactor.__dict__.get("_poller") is poller:
                reactor._poller = poller.plain

    # ---- the loop ---------------------------------------------------------------------------

    def _patch(self) -> None:
        base: Any = sys.modules[_BASE]
        calls = _DelayedCalls(self._hooks)
        self._patches.put(base, "heappop", calls.around_pop)
        from_threads = _CallsFromThreads(self._hooks, vars(base).get("_threadCallHandler"))
        if from_threads.plain is not None:
            self._patches.put(base, "_threadCallHandler", lambda _: from_threads)
        reactor_type = base.ReactorBase
        self._wrap(reactor_type, "runUntilCurrent", lambda original: calls.around(original, from_threads))
        self._wrap(reactor_type, "mainLoop", self._around_main_loop)
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

        return mainLoop

    # ---- its waits --------------------------------------------------------------------------

    def _bracket_poller(self, reactor: Any) -> None:
        """Never raises."""
        try:
            plain = reactor.__dict__.get("_poller")
            if plain is not None and not isinstance(plain, _Poller) and hasattr(plain, "poll"):
                bracketed = _Poller(plain, self._hooks)
                reactor._poller = bracketed
                self._pollers.append((reactor, bracketed))
        except Exception:  # noqa: BLE001 - a reactor of another make: it is watched by its callbacks
            return

    def _patch_select(self) -> None:
        module: Any = sys.modules["twisted.internet.selectreactor"]
        self._patches.put(module, "_select", self._around_select)
        self._wrap(module.SelectReactor, "_doReadOrWrite", self._around_descriptor)

    def _around_select(self, select: Callable[..., Any]) -> Callable[..., Any]:
        wait_begin, wait_end = self._hooks.wait_begin, self._hooks.wait_end

        def _select(*args: Any) -> Any:
            wait_begin()
            try:
                return select(*args)
            finally:
                wait_end()

        return _select

    # ---- its descriptors --------------------------------------------------------------------

    def _patch_poll_like(self) -> None:
        module: Any = sys.modules["twisted.internet.posixbase"]
        self._wrap(module._PollLikeMixin, "_doReadOrWrite", self._around_descriptor)

    def _around_descriptor(self, original: Callable[..., Any]) -> Callable[..., Any]:
        work_begin, work_end = self._hooks.work_begin, self._hooks.work_end
        names: dict[tuple[type, type], str] = {}

        def _doReadOrWrite(self_: Any, selectable: Any, *args: Any) -> Any:  # noqa: N802 - Twisted's name
            key = (type(selectable), type(getattr(selectable, "protocol", None)))
            name = names.get(key)
            if name is None:
                name = _descriptor_name(*key)
                if len(names) < _NAMES_MAX:
                    names[key] = name
            work_begin(name)
            try:
                return original(self_, selectable, *args)
            finally:
                work_end()

        return _doReadOrWrite

    # ---- patches ----------------------------------------------------------------------------

    def _wrap(self, owner: type, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        if isinstance(vars(owner).get(name), FunctionType):
            self._patches.put(owner, name, lambda original: update_wrapper(make(original), original))


class _Poller:
    """A select.epoll or select.poll object whose waits are bracketed."""

    def __init__(self, plain: Any, hooks: Any) -> None:
        self.plain = plain
        self.register, self.unregister, self.modify = plain.register, plain.unregister, plain.modify
        self._poll, self._wait_begin, self._wait_end = plain.poll, hooks.wait_begin, hooks.wait_end

    def poll(self, *args: Any) -> Any:
        """The wait, between two turns."""
        self._wait_begin()
        try:
            return self._poll(*args)
        finally:
            self._wait_end()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plain, name)


class _DelayedCalls:
    """Delayed calls run one after the other in runUntilCurrent: each begins when it is taken off the heap,
    and ends when the next one is, or when there are no more. The reactor's thread."""

    def __init__(self, hooks: Any) -> None:
        self._hooks = hooks
        self._is_open = False

    def around_pop(self, pop: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """`heapq.heappop` as twisted.internet.base has it."""
        work_begin, work_end = self._hooks.work_begin, self._hooks.work_end

        def heappop(heap: Any) -> Any:
            if self._is_open:
                work_end()
                self._is_open = False
            call = pop(heap)
            try:
                if not call.cancelled and not call.delayed_time > 0.0:
                    work_begin(_work_of(call.func))
                    self._is_open = True
            except AttributeError:  # not of the reactor's heap
                pass
            return call

        return heappop

    def around(self, original: Callable[..., Any], from_threads: _CallsFromThreads) -> Callable[..., Any]:
        """`ReactorBase.runUntilCurrent`; a callback may iterate the reactor, and come here again."""
        work_end = self._hooks.work_end

        def runUntilCurrent(self_: Any) -> Any:  # noqa: N802 - Twisted's name
            outer, self._is_open = self._is_open, False
            queue, index = from_threads.queue, from_threads.index
            from_threads.queue, from_threads.index = self_.threadCallQueue, 0
            try:
                return original(self_)
            finally:
                if self._is_open:
                    work_end()
                self._is_open = outer
                from_threads.queue, from_threads.index = queue, index

        return runUntilCurrent


class _CallsFromThreads:
    """The context manager around each call of callFromThread, with a bracket. The reactor's thread."""

    def __init__(self, hooks: Any, plain: Any) -> None:
        self._work_begin, self._work_end = hooks.work_begin, hooks.work_end
        self.plain = plain
        self.queue: Any = ()
        self.index = 0

    def __enter__(self) -> Any:
        try:
            work = _work_of(self.queue[self.index][0])
        except Exception:  # noqa: BLE001 - a queue of another make
            work = "callFromThread"
        self.index += 1
        self._work_begin(work)
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
