"""The portable engine before anything has stalled."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from loopcanary.engine.attachment import FORK_PATIENCE_S
from loopcanary.engine.fork_pause import ForkPause, wait_for_loads
from loopcanary.engine.kept import LateEngine
from loopcanary.engine.recorder import has_remains, is_crowded

if TYPE_CHECKING:
    from collections.abc import Callable

    from loopcanary.engine import Boundary
    from loopcanary.protocols.tracing import Traces

_LOAD = "loopcanary-load"
_AGAIN_S, _AGAIN_MOST_S = 1.0, 60.0


class LatePortable(LateEngine):
    """One run of it: a thread loads what judges when the backend has news."""

    def __init__(self, backend: Any, boundary: Boundary, *, folder: str, **more: Any) -> None:
        """As LateEngine. `backend`: a PortableBackend; `folder`: of the store's flight files, which native
        engines may have left."""
        super().__init__(backend, boundary, native=None, **more)
        self._folder = folder
        self._is_loading = False
        self._has_leavings = False
        self._again_s = _AGAIN_S
        self._hurries = threading.Event()
        """The loader is not to wait for its time."""
        self._loader: threading.Thread | None = None

    def start(self) -> None:
        """Begins to watch. RuntimeError where the system gives no thread."""
        self.backend.start()

    def begin(self, stop: Callable[[], None], hand_over: Callable[[], object]) -> None:
        """As Engine."""
        hand_over()
        self._attachment.begin(self.backend.listener, stop, _nothing)
        self.backend.on_news = self._load_soon
        self._traced.engine_runs(self._trace)
        if has_remains(self._folder) or is_crowded(self._folder):
            self._has_leavings = True
            self._load_soon()

    def _trace(self, traces: Traces) -> None:
        traces.keep(None, self._load_soon)

    def _load_soon(self) -> None:
        """Any thread. Where the system gives no other one, the next news are the next try."""
        if not self._is_loading:
            self.load_again(has_keeper=False, at_once=True)

    def load_again(self, *, has_keeper: bool, at_once: bool = False) -> None:  # noqa: ARG002 - as KeptEngine
        """As LateEngine."""
        delay_s = 0 if at_once else self._again_s
        self._again_s = min(2 * self._again_s, _AGAIN_MOST_S)
        self._hurries.clear()

        def run() -> None:
            self._hurries.wait(delay_s)
            self._load()

        def start() -> bool:
            loader = threading.Thread(target=run, name=_LOAD, daemon=True)
            try:
                loader.start()
            except RuntimeError:
                if threading.main_thread().is_alive():
                    raise
                return False  # CPython 3.12 gives none while the interpreter ends: then it is loaded at once
            self._loader = loader
            return True

        self._is_loading = bool(self._boundary.call("judging", start, keep=True))

    def fork_pause(self) -> ForkPause:
        """As Engine. The thread that loads, or is about to, gives way."""
        loader = self._loader
        if loader is not None and loader is not threading.current_thread():
            self._hurries.set()
            loader.join(FORK_PATIENCE_S)
            wait_for_loads(lambda: False, loader.native_id or 0)
        return super().fork_pause()

    @property
    def owes_verdicts(self) -> bool:
        """At the end: the store gets the figures of what was watched."""
        return super().owes_verdicts or self._has_leavings or bool(self.backend.statistics()["lanes_opened"])

    def loop_seen(self) -> None:
        """There are no facts beside the evidence."""

    def hand_over(self) -> None:
        """A thread of the program takes the stalls from now on."""
        self.backend.on_news = None
        super().hand_over()

    def finish(self) -> None:
        """Ends it."""
        self._attachment.end()
        self.backend.stop()


def _nothing() -> None:
    """There are no facts beside the evidence."""
