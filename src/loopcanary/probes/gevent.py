"""The gevent probe: turns around the hub's wait, callbacks for what a greenlet does between two switches.

The wait is hooked in the object that holds libev or libuv; where that cannot be done, prepare and check
watchers of the loop do. Switches come from greenlet's own trace function, in C
(native/probes/gevent/tracer.c). Both are laid on a thread when its hub begins to run, or now, if it runs
already.
"""

from __future__ import annotations

import sys
import weakref

from loopcanary.patches import ON, note
from loopcanary.probes import PatchingProbe
from loopcanary.thread_frames import thread_frames
from loopcanary.unpatched import unpatched
from loopcanary.whose_exception import ours

TYPE_CHECKING = False  # typing is not loaded for it

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType
    from typing import Any

    from loopcanary._native import Native


KIND = "gevent"
_LOOPS = {
    # The extension that holds the loop, and where the loop is if the extension is linked to the system's.
    "gevent.libev.corecext": "libev.so.4",
    "gevent.libev._corecffi": "libev.so.4",
    "gevent.libuv._corecffi": "libuv.so.1",
}
_WAITS = frozenset({"epoll_wait", "epoll_pwait"})
_BEGIN, _DESTROY = "start_periodic_monitoring_thread", "destroy"
_FIRST, _LAST = 2, -2  # libev's highest and lowest priority


class GeventProbe(PatchingProbe):
    """Watches the hubs of all threads."""

    kind = KIND
    _engine: Native

    def __init__(self, *sides: Any) -> None:
        super().__init__(*sides)
        self._hooked: dict[str, bool] = {}
        """Of each object that holds a loop: whether its waits are hooked."""
        self._tracers: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._watchers: list[Any] = []
        # Hubs of other threads are adopted when they get to it, which may be while the probe is taken back.
        # Not gevent's lock, at which greenlets would switch; a signal's handler may come here in the middle.
        self._lock = unpatched("_thread", "RLock")()

    def _patch(self) -> None:
        hub_type = sys.modules["gevent.hub"].Hub
        if not (hasattr(hub_type, _BEGIN) and hasattr(hub_type, _DESTROY)):
            self._notes.append("this gevent cannot be watched: it is older than 1.3, or made in another way")
            return
        self._patches.put(hub_type, _BEGIN, self._beginning)
        self._patches.put(hub_type, _DESTROY, self._destroying)
        self._adopt_running(hub_type)
        self._end_before_the_interpreter()

    def _take_back(self) -> None:
        """Takes back what this thread can reach: tracers of other threads stay, and report nothing."""
        super()._take_back()
        with self._lock:
            self._let_go_of_hubs()

    def _let_go_of_hubs(self) -> None:
        for path, hooked in self._hooked.items():
            if hooked:
                self._engine.unhook_waits(path)
        self._hooked.clear()
        if self._tracers:
            own = sys.modules["gevent._hub_local"].get_hub_if_exists()
            tracer = self._tracers.pop(own, None) if own is not None else None
            if tracer is not None:
                self._stop(tracer)
        self._tracers.clear()

    def _beginning(self, original: Any) -> Any:
        """Called in the hub's greenlet, before anything else that it does."""

        def start_periodic_monitoring_thread(hub: Any) -> Any:
            if self._is_on:
                self._adopt(hub)
            return original(hub)

        return start_periodic_monitoring_thread

    def _destroying(self, original: Any) -> Any:
        def destroy(hub: Any, destroy_loop: bool | None = None) -> None:
            own = sys.modules["gevent._hub_local"].get_hub_if_exists()
            original(hub, destroy_loop)
            tracer = self._tracers.pop(hub, None)
            if tracer is not None and own is hub:
                self._contain(lambda: self._stop(tracer))

        return destroy

    # ---- hubs

    def _adopt(self, hub: Any) -> None:
        """On the hub's thread. What it raises is the program's own, such as SystemExit from a signal's
        handler."""
        try:
            if self._is_on:
                self._loop_seen()
            with self._lock:
                if self._is_on:  # no other thread has taken it back meanwhile
                    self._lay_on(hub)
        except ours():  # a hub that cannot be watched runs
            return

    def _lay_on(self, hub: Any) -> None:
        greenlet = sys.modules["greenlet"]
        tracer: Any = greenlet.gettrace()
        if type(tracer) is not self._engine.GreenletTracer:
            types = sys.modules["gevent.hub"].Hub, sys.modules["gevent.greenlet"].Greenlet
            tracer = self._engine.GreenletTracer(*types, tracer)
            greenlet.settrace(tracer)
            self._patches.hook("greenlet.settrace")
        self._tracers[hub] = tracer
        tracer.begin()
        if not self._hook_waits(hub.loop):
            self._watch_waits(hub.loop)

    def _adopt_running(self, hub_type: Any) -> None:
        own = sys.modules["gevent._hub_local"].get_hub_if_exists()
        if own:  # a hub that has not begun, or is dead, is false
            self._adopt(own)
        for hub in _waiting_hubs(hub_type):
            if hub is not own:
                hub.loop.run_callback_threadsafe(self._adopt, hub)

    def _stop(self, tracer: Any) -> None:
        greenlet = sys.modules["greenlet"]
        tracer.end()
        if greenlet.gettrace() is tracer:
            greenlet.settrace(tracer.previous)

    def _end_before_the_interpreter(self) -> None:
        """When the main thread's program is over, the interpreter waits for other threads."""
        register = getattr(sys.modules.get("threading"), "_register_atexit", None)
        if register is None:
            return
        itself = weakref.ref(self)

        def end() -> None:
            probe = itself()
            own = sys.modules["gevent._hub_local"].get_hub_if_exists()
            tracer = None if probe is None or own is None else probe._tracers.get(own)
            if tracer is not None:
                tracer.end()

        register(end)
        note(ON, "hook threading._register_atexit, for good")

    # ---- waits

    def _hook_waits(self, loop: Any) -> bool:
        for name, system in _LOOPS.items():
            module = sys.modules.get(name)
            path = getattr(module, "__file__", None)
            is_its = type(loop).__module__.rpartition(".")[0] == name.rpartition(".")[0]
            if path is not None and is_its and (self._is_hooked(path) or self._is_hooked(system)):
                return True
        return False

    def _is_hooked(self, where: str) -> bool:
        if where not in self._hooked:
            self._hooked[where] = not _WAITS.isdisjoint(self._engine.hook_waits(where))
        return self._hooked[where]

    def _watch_waits(self, loop: Any) -> None:
        """Last before the wait, and first after it, with gevent's own watchers in between."""
        hooks = self._engine.LoopHooks(KIND)
        for watcher, told in (
            (loop.prepare(ref=False, priority=_LAST), hooks.wait_begin),
            (loop.check(ref=False, priority=_FIRST), hooks.wait_end),
        ):
            watcher.start(told)
            self._watchers.append(watcher)


def _waiting_hubs(hub_type: Any) -> Iterator[Any]:
    """Hubs of other threads that run or wait at this moment. A greenlet's frames do not lead to its hub."""
    code = hub_type.run.__code__
    frame: FrameType | None
    for frame in list(thread_frames().values()):
        while frame is not None:
            if frame.f_code is code:
                yield frame.f_locals["self"]
            frame = frame.f_back  # noqa: PLW2901 - none stays bound: this generator's is among them
