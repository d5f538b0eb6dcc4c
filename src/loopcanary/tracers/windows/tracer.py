"""The tracer of windows that take no input or paint nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from loopcanary.model.issues.windows import BlockedWindow
from loopcanary.protocols.plugins import TracerPort
from loopcanary.protocols.tracing import AwaitImport, ImportWait
from loopcanary.tracers.places import Owns, frames_of
from loopcanary.tracers.windows import gtk, qt, tk
from loopcanary.tracers.windows.watch import Hooks, LeftOn, WindowWatch
from loopcanary.whose_exception import ours

_TOOLKITS: tuple[tuple[Sequence[str], Any], ...] = (
    (qt.AWAITS, qt.QtStates),
    (tk.AWAITS, tk.TkStates),
    (gtk.AWAITS, gtk.GtkStates),
)


class WindowTracer:
    """Reports `blocked-window`."""

    name = "windows"

    def __init__(
        self,
        limit_ns: int,
        owns: Owns,
        await_import: AwaitImport,
        *,
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._limit_ns = limit_ns
        self._owns = owns
        self._await_import = await_import
        self._now_ns = now_ns
        self._watches: list[WindowWatch] = []
        self._waits: list[ImportWait] = []
        self._put_in: set[str] = set()
        """Kinds of toolkits whose hooks are there."""

    def init(self, desk: TracerPort) -> None:
        self._desk = desk
        self._hooks = Hooks(desk.failed)

    def start(self) -> None:
        self._hooks.is_on = True
        if not self._waits:
            self._waits = [self._wait_for(awaits, toolkit) for awaits, toolkit in _TOOLKITS]
        for wait in self._waits:
            wait.start()

    def _wait_for(self, awaits: Sequence[str], toolkit: Any) -> ImportWait:
        windows = toolkit(partial(self._watch, toolkit.kind), self._hooks, self._contain)

        def put_in() -> None:
            if toolkit.kind not in self._put_in:
                self._put_in.add(toolkit.kind)
                windows.put_in()

        return self._await_import(awaits, partial(self._contain, put_in))

    def stop(self) -> None:
        """See protocols.plugins.Tracer. What a loop was asked for does nothing from now on."""
        for wait in self._waits:
            wait.cancel()
        self._hooks.take_out()
        if not self._hooks.stay:
            self._put_in.clear()
        for watch in self._watches:
            watch.end()

    def _watch(self, kind: str) -> WindowWatch:
        watch = WindowWatch(self._limit_ns, partial(self._told, kind), self._now_ns)
        self._watches.append(watch)
        return watch

    def _told(self, kind: str, state: LeftOn, lasted_ns: int) -> None:
        self._desk.report(
            BlockedWindow(
                began_wall_ns=time.time_ns() - lasted_ns,
                duration_ns=lasted_ns,
                loop=kind,
                blocked_by=state.blocked_by,
                subject=state.seen,
                times=state.times,
                switched_on=tuple(frames_of(state.places, self._owns)),
            )
        )

    def _contain(self, call: Callable[[], object]) -> None:
        if self._hooks.is_on:
            try:
                call()
            except ours() as error:  # a callback of the program's loop
                self._desk.failed(error)
